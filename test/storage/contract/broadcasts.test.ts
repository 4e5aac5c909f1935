import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type {
  Broadcast,
  BroadcastEnds,
  BroadcastOutcome,
  BroadcastProgress,
} from '../../../src/domain/mail/broadcast.ts';
import type { MailEnd } from '../../../src/domain/mail/ended-mail.ts';
import type { SettleVerb } from '../../../src/domain/mail/mail.ts';
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

  /** Until there is nothing more to forget. */
  async function forget(active: readonly BroadcastProgress[]): Promise<number> {
    let total = 0;
    for (;;) {
      const count = await store.shard.dedupe.pruneBroadcasts(active);
      if (count === 0) return total;
      total += count;
    }
  }

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

  it('how the mail of a broadcast ended is counted apart from all other mail, step by step', async () => {
    await store.create(...devices);
    const [one, other] = [generateUuid(), generateUuid()];
    const settled = async (device: DeviceKey, verb: SettleVerb): Promise<void> => {
      const { mail } = await store.shard.mail.head(device);
      await store.settle(device, mail?.id ?? Buffer.alloc(16), verb);
    };
    await send(one, devices, { requeuesMax: 0 });
    for (const [index, verb] of (['ack', 'ack', 'reject', 'requeue'] as const).entries()) {
      await settled(devices[index] as DeviceKey, verb);
    }
    await send(other, [first, second]);
    await settled(first, 'ack');
    await store.settle(second, await store.send(second), 'ack');
    const now = Date.now();
    const count = async (broadcast: Uint8Array, scanMax: number, fromMs = now - 60_000) => {
      const ends: Partial<Record<MailEnd, number>> = {};
      let after: string | undefined = '';
      while (after !== undefined) {
        const query = { broadcast, fromMs, untilMs: now + 60_000, after, scanMax };
        const page: BroadcastEnds = await store.shard.mail.broadcastEnds(query);
        expect(page.scanned).toBeLessThanOrEqual(scanMax);
        for (const [end, more] of Object.entries(page.ends)) {
          ends[end as MailEnd] = (ends[end as MailEnd] ?? 0) + more;
        }
        after = page.reached;
      }
      return ends;
    };
    for (const scanMax of [1, 2, 100]) {
      expect(await count(one, scanMax)).toEqual({ acked: 2, rejected: 1, over_requeued: 1 });
      expect(await count(other, scanMax)).toEqual({ acked: 1 });
    }
    expect(await count(one, 100, now + 30_000)).toEqual({});
    expect(await count(generateUuid(), 100)).toEqual({});
  });

  it('who has had it is forgotten up to where each broadcast has come, and with those that are over', async () => {
    await store.create(...devices);
    const [over, active, behind] = [generateUuid(), generateUuid(), generateUuid()];
    for (const broadcast of [over, active, behind]) await send(broadcast);
    const progress = [
      { broadcast: active, after: second },
      { broadcast: behind, after: fleetId },
    ];
    expect(await forget(progress)).toBe(5 + 2);
    expect(await forget(progress)).toBe(0);
    for (const device of devices) await store.shard.devices.delete(device);
    // Known, though the device is not.
    expect((await send(active)).queued).toBe(3);
    expect((await send(behind)).queued).toBe(5);
    expect((await send(over)).queued).toBe(0);
    expect(await forget([])).toBe(8);
    expect(await forget([])).toBe(0);
  });
});
