/** Contract of `Shard`: event streams. */

import { describe, expect, it } from 'vitest';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { DeviceChange } from '../../../src/domain/devices/device.ts';
import { engines } from './engine.ts';
import { device, digestOf, mailFor, NotingSink, newDevice, second, useStore } from './store.ts';

describe.each(engines)('event streams on $name', (engine) => {
  const store = useStore(engine, { streamsPerDeviceMax: 2 });

  async function open(of = device, by = store.shard): Promise<NotingSink> {
    const sink = new NotingSink();
    await by.streams.subscribe(of, sink);
    return sink;
  }

  /** When this is announced, all that came before has been. */
  async function flush(...sinks: NotingSink[]): Promise<void> {
    const mailId = formatUuid(await store.send(device, { name: 'flush' }));
    for (const sink of sinks) {
      await expect.poll(() => sink.announced.some((one) => one.mailId === mailId)).toBe(true);
    }
  }

  it('D20: mail is announced in its order to all streams of its device, with the size that it made', async () => {
    await store.create(device, second);
    const sinks = [await open(), await open(device, store.elsewhere)];
    const other = await open(second);
    const expected = [];
    for (let mailboxSize = 1; mailboxSize <= 10; mailboxSize += 1) {
      const by = mailboxSize % 2 ? store.shard : store.elsewhere;
      const mailId = await store.send(device, { name: `n${mailboxSize}` }, by);
      expected.push({ mailId: formatUuid(mailId), name: `n${mailboxSize}`, mailboxSize });
    }
    for (const sink of sinks) await expect.poll(() => sink.announced).toEqual(expected);
    expect(other.announced).toEqual([]);
  });

  it('D20: only mail that is new is announced, and only once it is stored', async () => {
    await store.create(device);
    const sink = await open();
    const mailId = await store.send(device, { requeuesMax: 1 });
    for (const verb of ['requeue', 'requeue'] as const) await store.settle(device, mailId, verb);
    await store.shard.mail.enqueue(mailFor(device, { mailboxMailsMax: 0 }));
    await store.send(device, { deliverAtMs: Date.now() + 3_600_000 });
    await store.shard.devices.noteActivity([{ device, lastSeenMs: 5_000, address: undefined, fetches: [] }]);
    await flush(sink);
    expect(sink.announced.map(({ name }) => name)).toEqual(['note', 'flush']);
    expect([sink.ends, sink.rechecks]).toEqual([0, 0]);
  });

  it('D31: of requests that wait for mail a device has one, wherever they come in, apart from its streams', async () => {
    await store.create(device, second);
    const wait = async (of = device, by = store.shard) => {
      const sink = Object.assign(new NotingSink(), { waits: true });
      return { sink, leave: await by.streams.subscribe(of, sink) };
    };
    const streams = [await open(), await open()];
    const older = await wait();
    const other = await wait(second);
    const newer = await wait(device, store.elsewhere);
    await expect.poll(() => older.sink.ends).toBe(1);
    older.leave();
    await flush(newer.sink, ...streams);
    expect(older.sink.announced).toEqual([]);
    // Streams displace streams alone.
    const third = await open(device, store.elsewhere);
    await expect.poll(() => streams.map(({ ends }) => ends)).toEqual([1, 0]);
    await flush(newer.sink, third);
    newer.leave();
    await flush(third);
    expect([newer.sink.announced.length, newer.sink.ends, other.sink.ends]).toEqual([2, 0, 0]);
    await store.shard.devices.delete(second);
    await expect.poll(() => other.sink.ends).toBe(1);
  });

  it('whoever has left is told nothing any more', async () => {
    await store.create(device);
    const left = new NotingSink();
    const leave = await store.shard.streams.subscribe(device, left);
    const stays = await open();
    await flush(left, stays);
    leave();
    leave();
    await flush(stays);
    await store.shard.devices.delete(device);
    await expect.poll(() => stays.ends).toBe(1);
    expect([left.announced.length, left.ends]).toEqual([1, 0]);
  });

  it('a stream that leaves as it is told of a mail takes that mail from no other of its device', async () => {
    await store.create(device);
    const leaving = new NotingSink();
    const leave = await store.shard.streams.subscribe(device, {
      announce(announcement) {
        leaving.announce(announcement);
        leave();
      },
      recheck: () => leaving.recheck(),
      end: () => leaving.end(),
    });
    const stays = await open();
    const mailId = formatUuid(await store.send(device));
    await flush(stays);
    expect([leaving, stays].map(({ announced }) => announced[0]?.mailId)).toEqual([mailId, mailId]);
    expect([leaving, stays].map(({ announced }) => announced.length)).toEqual([1, 2]);
  });

  it('D21: one stream more than a device may have ends its oldest', async () => {
    await store.create(device, second);
    const [first, next] = [await open(), await open(device, store.elsewhere)];
    const other = await open(second);
    const third = await open();
    await expect.poll(() => first.ends).toBe(1);
    await flush(next, third);
    expect(first.announced).toEqual([]);
    const fourth = await open(device, store.elsewhere);
    await expect.poll(() => next.ends).toBe(1);
    await flush(third, fourth);
    expect([first, next, third, fourth, other].map(({ ends }) => ends)).toEqual([1, 1, 0, 0, 0]);
  });

  it('D21: disabling, deleting and re-keying a device end its streams, each once, and none of another', async () => {
    const oldUntilMs = Date.now() + 600_000;
    const changes: DeviceChange[] = [
      { enabled: false },
      { secretDigests: [digestOf(2)] },
      { rotation: { digest: digestOf(3), oldUntilMs: undefined } },
    ];
    await store.create(second);
    const other = await open(second);
    for (const change of changes) {
      for (const by of ['changeDevice', 'changeDevices', 'putDevices'] as const) {
        await store.create(device);
        const sinks = [await open(), await open(device, store.elsewhere)];
        if (by === 'changeDevice') await store.shard.devices.change(device, change);
        else if (by === 'changeDevices') await store.shard.devices.changeMany([device], change);
        else await store.shard.devices.put([{ device: newDevice(device), change }]);
        for (const sink of sinks) await expect.poll(() => sink.ends).toBe(1);
        // Told of nothing more.
        await store.shard.devices.change(device, {
          enabled: true,
          rotation: { digest: digestOf(4), oldUntilMs },
        });
        const anew = await open();
        await flush(anew);
        expect(sinks.map(({ ends, announced }) => [ends, announced.length])).toEqual([
          [1, 0],
          [1, 0],
        ]);
        await store.shard.devices.delete(device);
        await expect.poll(() => anew.ends).toBe(1);
      }
    }
    expect([other.ends, other.rechecks]).toEqual([0, 0]);
  });

  it('no other change of a device ends a stream', async () => {
    await store.create(device);
    const sink = await open();
    const changes: DeviceChange[] = [
      { name: 'other', tags: ['a'], enabled: true },
      { addTags: ['b'], removeTags: ['a'] },
      { secretDigests: [digestOf(1)] },
      { rotation: { digest: digestOf(2), oldUntilMs: Date.now() + 600_000 } },
      { secretDigests: [digestOf(2)] },
    ];
    for (const change of changes) await store.shard.devices.change(device, change);
    await flush(sink);
    expect([sink.ends, sink.rechecks]).toEqual([0, 0]);
  });

  it('D3, D21: when an old secret ends, streams are told to look whether they were opened with it', async () => {
    await store.create(device);
    const sinks = [await open(), await open(device, store.elsewhere)];
    const rotation = { digest: digestOf(2), oldUntilMs: Date.now() + 200 };
    await store.shard.devices.change(device, { rotation });
    for (const sink of sinks) await expect.poll(() => sink.rechecks).toBe(1);
    expect((await store.shard.devices.credentials(device))?.secretDigests).toHaveLength(1);
    expect(sinks.map(({ ends }) => ends)).toEqual([0, 0]);
  });

  it('D3, D21: an old secret that a third one drops before its time has ended, too', async () => {
    await store.create(device);
    const sink = await open();
    const oldUntilMs = Date.now() + 600_000;
    await store.shard.devices.change(device, { rotation: { digest: digestOf(2), oldUntilMs } });
    await flush(sink);
    expect(sink.rechecks).toBe(0);
    await store.shard.devices.change(device, { rotation: { digest: digestOf(3), oldUntilMs } });
    await expect.poll(() => sink.rechecks).toBe(1);
    expect(sink.ends).toBe(0);
  });

  it('a stream that is registered misses no mail that is sent behind it', async () => {
    await store.create(device);
    for (let round = 0; round < 10; round += 1) {
      const sink = new NotingSink();
      const leave = await (round % 2 ? store.elsewhere : store.shard).streams.subscribe(device, sink);
      await flush(sink);
      leave();
    }
  });
});
