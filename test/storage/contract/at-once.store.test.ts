/** Contract of `Shard`: several callers at once. */

import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid, parseUuid } from '../../../src/core/uuid.ts';
import { engines } from './engine.ts';
import { digestOf, fleetId, mailFor, NotingSink, type Store, useStore } from './store.ts';

const callers = 5;
const devicesPerRun = 2;
const mailsMax = 5;
const keysPerRun = 3;

const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('send' as const),
      device: fc.nat({ max: devicesPerRun - 1 }),
      /** One of the sender's keys, which all callers share. */
      key: fc.option(fc.nat({ max: keysPerRun - 1 }), { nil: undefined }),
      requeuesMax: fc.constantFrom(undefined, 0, 1),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constantFrom(
        'ack' as const,
        'ack' as const,
        'reject' as const,
        'requeue' as const,
        'requeue' as const,
        'withdraw' as const,
        'replay' as const,
        'drop' as const,
      ),
      device: fc.nat({ max: devicesPerRun - 1 }),
      /** Which of the mails that anybody knows of, from the newest on. */
      index: fc.nat({ max: 9 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('ingest' as const),
      device: fc.nat({ max: devicesPerRun - 1 }),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

const deaths: readonly string[] = ['rejected', 'over_requeued'];
const ends: readonly string[] = ['acked', 'withdrawn', ...deaths];

/** One device, and what its callers were answered. */
class Subject {
  readonly device: DeviceKey;
  readonly sink = new NotingSink();
  readonly #keys = Array.from({ length: keysPerRun }, () => generateUuid());
  /** The size that each mail made when it was queued. */
  readonly #sizes = new Map<string, number>();
  readonly #idOfKey = new Map<number, string>();
  readonly #known: string[] = [];
  readonly #dropped: string[] = [];
  /** Payloads of the records that were answered as stored, in the order of each caller. */
  readonly #ingested: string[][] = Array.from({ length: callers }, () => []);

  constructor(device: DeviceKey) {
    this.device = device;
  }

  async run(store: Store, caller: number, operation: Operation): Promise<void> {
    const { device } = this;
    const shard = caller % 2 === 0 ? store.shard : store.elsewhere;
    if (operation.type === 'ingest') {
      const payload = `{"caller":${caller},"n":${this.#ingested[caller]?.length}}`;
      await shard.log.append({ device, kind: 'message', schema: 'reading', payload: Buffer.from(payload) });
      this.#ingested[caller]?.push(payload);
      return;
    }
    if (operation.type === 'send') {
      const { key, requeuesMax } = operation;
      const idempotency =
        key === undefined ? undefined : { key: this.#keys[key] as Buffer, digest: digestOf(1) };
      const more = { ...(idempotency && { idempotency }), ...(requeuesMax !== undefined && { requeuesMax }) };
      const outcome = await shard.mail.enqueue(mailFor(device, { mailboxMailsMax: mailsMax, ...more }));
      if (outcome.result === 'queued') this.#noteQueued(outcome, key);
      else expect(outcome).toEqual({ result: 'mailbox_full', mailboxSize: mailsMax });
      return;
    }
    const id = this.#known.at(-1 - (operation.index % Math.max(this.#known.length, 1)));
    const mailId = id === undefined ? undefined : parseUuid(id);
    if (id === undefined || mailId === undefined) return;
    if (operation.type === 'withdraw') await shard.mail.withdraw(device, mailId);
    else if (operation.type === 'drop') {
      if (await shard.deadLetters.drop(device, mailId)) this.#dropped.push(id);
    } else if (operation.type === 'replay') {
      const limits = { ttlSeconds: 3_600, mailboxMailsMax: mailsMax };
      const outcome = await shard.deadLetters.replay({ device, mailId, ...limits });
      if (outcome.result === 'queued') this.#noteQueued(outcome);
    } else await shard.mail.settle({ device, mailId, verb: operation.type });
  }

  #noteQueued(outcome: { mailId: Uint8Array; mailboxSize: number; repeated: boolean }, key?: number): void {
    const id = formatUuid(outcome.mailId);
    if (key !== undefined) {
      expect(this.#idOfKey.get(key) ?? id, 'a key is of one mail').toBe(id);
      this.#idOfKey.set(key, id);
    }
    if (!this.#known.includes(id)) this.#known.push(id);
    if (outcome.repeated) return;
    expect(this.#sizes.has(id), 'a mail is queued once').toBe(false);
    this.#sizes.set(id, outcome.mailboxSize);
  }

  /** The log tells in which order it all happened: done again in that order, it leaves what there is. */
  async check(store: Store): Promise<void> {
    const { device } = this;
    let waiting: string[] = [];
    const states = new Map<string, { state: string; requeueCount: number }>();
    const sizes = new Map<string, number>();
    let letters: string[] = [];
    for (const { mail_id: id, event, new_mail_id: newId } of await store.mailEvents(device)) {
      const before = states.get(id);
      expect(before === undefined, `${event} of ${id}`).toBe(event === 'queued');
      if (event === 'queued') {
        waiting.push(id);
        sizes.set(id, waiting.length);
        states.set(id, { state: 'queued', requeueCount: 0 });
      } else if (event === 'replayed') {
        expect([letters, waiting]).toEqual([expect.arrayContaining([id]), expect.arrayContaining([newId])]);
        letters = letters.filter((one) => one !== id);
      } else {
        expect(waiting).toContain(id);
        waiting = waiting.filter((one) => one !== id);
        const requeueCount = before?.requeueCount ?? 0;
        if (event === 'requeued') {
          waiting.push(id);
          states.set(id, { state: 'queued', requeueCount: requeueCount + 1 });
        } else {
          expect(ends).toContain(event);
          states.set(id, { state: event, requeueCount });
          if (deaths.includes(event)) letters.push(id);
        }
      }
      expect(waiting.length).toBeLessThanOrEqual(mailsMax);
    }
    expect(sizes).toEqual(this.#sizes);
    expect(await store.mailIds(device)).toEqual(waiting);
    const { size, mail } = await store.shard.mail.head(device);
    expect([size, mail && formatUuid(mail.id)]).toEqual([waiting.length, waiting[0]]);
    for (const [id, expected] of states) {
      expect(await store.shard.mail.receipt(device, parseUuid(id) ?? Buffer.alloc(16))).toMatchObject(
        expected,
      );
    }
    const { items } = await store.shard.deadLetters.list(fleetId, { device }, '', 1_000);
    expect(items.map(({ mailId }) => formatUuid(mailId)).sort()).toEqual(
      letters.filter((id) => !this.#dropped.includes(id)).sort(),
    );
    const announced = this.sink.announced.map(({ mailId, mailboxSize }) => [mailId, mailboxSize] as const);
    expect(announced).toHaveLength(sizes.size);
    expect(new Map(announced)).toEqual(sizes);
    const own = (await store.records()).filter((one) => one.device === device && one.kind === 'message');
    for (const [caller, sent] of this.#ingested.entries()) {
      const stored = own.map(({ payload }) => payload.toString('utf8'));
      expect(stored.filter((one) => one.startsWith(`{"caller":${caller},`))).toEqual(sent);
    }
  }
}

describe.each(engines)('callers at once on $name', (engine) => {
  const store = useStore(engine);

  it('D14 to D18: whatever several callers do at once to the same devices, nothing is lost and nothing doubled', async () => {
    let made = 0;
    const sequences = fc.array(fc.array(operation, { minLength: 1, maxLength: 25 }), {
      minLength: callers,
      maxLength: callers,
    });
    await fc.assert(
      fc.asyncProperty(sequences, async (all) => {
        const subjects = Array.from({ length: devicesPerRun }, () => {
          made += 1;
          return new Subject(deviceKeyOf(fleetId, `D${String(made).padStart(9, '0')}`));
        });
        for (const { device, sink } of subjects) {
          await store.create(device);
          await store.shard.streams.subscribe(device, sink);
          await expect.poll(() => store.elsewhere.devices.credentials(device)).toBeDefined();
        }
        await Promise.all(
          all.map(async (operations, caller) => {
            for (const one of operations) await subjects[one.device]?.run(store, caller, one);
          }),
        );
        for (const subject of subjects) {
          // Changes made elsewhere may be some moments behind.
          await vi.waitFor(() => subject.check(store), { timeout: 60_000, interval: 20 });
        }
        await store.reopen();
        for (const subject of subjects) await subject.check(store);
      }),
      { numRuns: 15, endOnFailure: true },
    );
  });
});
