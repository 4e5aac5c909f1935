/** Contract of `Shard`: mail of broadcasts. */

import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type { Broadcast, BroadcastMail, BroadcastOutcome } from '../../../src/domain/mail/broadcast.ts';
import type { Page } from '../../../src/domain/page.ts';
import { engines } from './engine.ts';
import { fleetId, mailFor, NotingSink, newDevice, payloadOf, useStore } from './store.ts';

const devices = Array.from({ length: 5 }, (_, n) => deviceKeyOf(fleetId, `DEVICE000${n}`));
const [first, second] = devices as [DeviceKey, DeviceKey];
const nobody = deviceKeyOf(fleetId, 'NOBODY0001');

describe.each(engines)('broadcasts on $name', (engine) => {
  const store = useStore(engine);

  function send(
    broadcast: Uint8Array,
    to: readonly DeviceKey[] = devices,
    more: Partial<Broadcast['mail']> = {},
    by = store.shard,
  ): Promise<BroadcastOutcome> {
    const { device: _, ...mail } = mailFor(first, more);
    return by.mail.broadcast({ broadcast, devices: to, mail });
  }

  const sizes = (): Promise<number[]> =>
    Promise.all(devices.map(async (device) => store.shard.mail.size(device)));

  /** States of a broadcast's mail, one for each device that got it. */
  const statesOf = async (broadcast: Uint8Array): Promise<string[]> =>
    (await store.shard.mail.ofBroadcast(broadcast, '', 100)).items.map(({ state }) => state);

  it('each device gets the mail of a broadcast once, however often it is sent and across restarts', async () => {
    await store.create(...devices);
    const one = generateUuid();
    expect(await send(one, [first, second, first])).toEqual({ queued: 3, refused: [] });
    expect(await send(one)).toEqual({ queued: 5, refused: [] });
    await store.reopen();
    expect(await send(one)).toEqual({ queued: 5, refused: [] });
    expect(await sizes()).toEqual([1, 1, 1, 1, 1]);
    await send(generateUuid());
    expect(await sizes()).toEqual([2, 2, 2, 2, 2]);
    expect(await send(generateUuid(), [])).toEqual({ queued: 0, refused: [] });
  });

  it('of the same sent from everywhere at once each device gets one', async () => {
    await store.create(...devices);
    const one = generateUuid();
    const shards = [store.shard, store.elsewhere, store.shard, store.elsewhere];
    const outcomes = await Promise.all(shards.map((shard) => send(one, devices, {}, shard)));
    for (const outcome of outcomes) expect(outcome).toEqual({ queued: 5, refused: [] });
    await expect.poll(sizes).toEqual([1, 1, 1, 1, 1]);
  });

  it('its mail is a mail like any other: announced, with a record and a receipt', async () => {
    await store.create(...devices);
    const sink = new NotingSink();
    await store.shard.streams.subscribe(second, sink);
    const payload = payloadOf({ all: true });
    await send(generateUuid(), devices, { name: 'all', payload, requeuesMax: 2, ttlSeconds: 60 });
    await send(generateUuid(), [second], { deliverAtMs: Date.now() + 3_600_000 });
    const { mail } = await store.shard.mail.head(second);
    expect(mail).toMatchObject({ name: 'all', requeuesMax: 2 });
    expect(mail?.payload.equals(payload)).toBe(true);
    const mailId = formatUuid(mail?.id ?? Buffer.alloc(16));
    await expect.poll(() => sink.announced).toEqual([{ mailId, name: 'all', mailboxSize: 1 }]);
    expect(await store.stateOf(second, mail?.id ?? Buffer.alloc(16))).toBe('queued');
    expect((await store.mailEvents(second)).map(({ event }) => event)).toEqual(['queued', 'delayed']);
  });

  it('says of each device that did not get it why, and gives it to it when it is sent again', async () => {
    await store.create(...devices);
    const one = generateUuid();
    await store.sendMany(first, 2);
    const limit = { mailboxMailsMax: 2 };
    expect(await send(one, [first, nobody, second], limit)).toEqual({
      queued: 1,
      refused: [
        { device: first, reason: 'mailbox_full' },
        { device: nobody, reason: 'device_not_found' },
      ],
    });
    await store.shard.devices.create([newDevice(nobody)]);
    expect(await send(one, [nobody, second], limit)).toEqual({ queued: 2, refused: [] });
    expect(await store.shard.mail.size(second)).toBe(1);
  });

  it('tells of each device what became of its mail, by device and page by page', async () => {
    await store.create(...devices);
    const one = generateUuid();
    await send(one);
    expect(await statesOf(one)).toEqual(Array(5).fill('queued'));
    const mails = (await store.shard.mail.ofBroadcast(one, '', 100)).items;
    const settle = (n: number, verb: 'ack' | 'reject' | 'requeue') =>
      store.settle(devices[n] as DeviceKey, mails[n]?.mailId ?? Buffer.alloc(16), verb);
    await settle(0, 'ack');
    await settle(1, 'reject');
    // The mail is requeued behind another one: it is no longer where it was.
    await store.sendMany(devices[2] as DeviceKey, 1);
    await settle(2, 'requeue');
    await store.shard.devices.delete(devices[3] as DeviceKey);
    expect(await statesOf(one)).toEqual(['acked', 'rejected', 'queued', 'unknown', 'queued']);
    const fetches = [{ mailId: mails[4]?.mailId ?? Buffer.alloc(16), count: 3, firstMs: Date.now() }];
    const seen = { device: devices[4] as DeviceKey, lastSeenMs: Date.now(), address: undefined, fetches };
    await store.shard.devices.noteActivity([seen]);
    const fetchCounts = async () =>
      (await store.shard.mail.ofBroadcast(one, '', 100)).items.map(({ fetchCount }) => fetchCount);
    await expect.poll(fetchCounts).toEqual([0, 0, 0, 0, 3]);
    const pages: string[][] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page: Page<BroadcastMail> = await store.elsewhere.mail.ofBroadcast(one, after, 2);
      pages.push(page.items.map(({ device }) => device));
      after = page.next;
    }
    expect(pages).toEqual([devices.slice(0, 2), devices.slice(2, 4), devices.slice(4)]);
    const later = generateUuid();
    await send(later, [first], { deliverAtMs: Date.now() + 3_600_000 });
    expect(await statesOf(later)).toEqual(['delayed']);
    expect(await statesOf(generateUuid())).toEqual([]);
    await store.reopen();
    expect(await statesOf(one)).toEqual(['acked', 'rejected', 'queued', 'unknown', 'queued']);
  });

  it('who had the mail of a broadcast is forgotten with it, and of no other', async () => {
    await store.create(...devices);
    const sent = [generateUuid(), generateUuid(), generateUuid()] as const;
    for (const broadcast of sent) await send(broadcast);
    const { dedupe } = store.shard;
    expect(await dedupe.broadcasts(undefined, 10)).toEqual(sent.map((id) => ({ fleetId, id })));
    expect(await dedupe.broadcasts(sent[0], 1)).toEqual([{ fleetId, id: sent[1] }]);
    expect(await dedupe.broadcasts(sent[2], 1)).toEqual([]);
    for (const device of devices) await store.shard.devices.delete(device);
    expect(await dedupe.forgetBroadcast(sent[1])).toBe(5);
    expect(await dedupe.forgetBroadcast(sent[1])).toBe(0);
    // Known, though the device is not.
    expect((await send(sent[0])).queued).toBe(5);
    expect((await send(sent[1])).queued).toBe(0);
    expect((await send(sent[2])).queued).toBe(5);
  });
});
