/** Contract of `Shard`: any sequence of calls against the model in `test/domain`. */

import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid, parseUuid } from '../../../src/core/uuid.ts';
import { waitingBytesOf } from '../../../src/domain/mail/mail-bytes.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { DeviceModel } from '../../domain/model.ts';
import { engines } from './engine.ts';
import { digestOf, fleetId, mailFor, type Store, useStore } from './store.ts';

const mailsMax = 6;
const devicesPerRun = 3;
const keysPerRun = 4;
const farMs = 3_600_000;

const pool = fc.constantFrom(
  'waiting' as const,
  'waiting' as const,
  'delayed' as const,
  'ended' as const,
  'settled' as const,
  'dead' as const,
  'unknown' as const,
);
/** Index fields are taken modulo what there is at that moment, so that every sequence means something. */
const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('enqueue' as const),
      payload: fc.nat({ max: 9 }).map((n) => `{"n": ${n}}`),
      requeuesMax: fc.constantFrom(undefined, 0, 1),
      isDelayed: fc.constantFrom(false, false, false, true),
      key: fc.constantFrom(undefined, undefined, 'a', 'a', 'b'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('settle' as const),
      verb: fc.constantFrom('ack' as const, 'reject' as const, 'requeue' as const),
      of: pool,
      index: fc.nat({ max: 40 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constantFrom(
        'withdraw' as const,
        'receipt' as const,
        'replay' as const,
        'drop' as const,
        'fetch' as const,
      ),
      of: pool,
      index: fc.nat({ max: 40 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('look' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('send' as const),
      kind: fc.constantFrom('datapoint' as const, 'message' as const),
      payload: fc.nat({ max: 2 }).map((n) => `{"n":${n}}`),
      key: fc.option(fc.nat({ max: keysPerRun - 1 }), { nil: undefined }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('sync' as const),
      queue: fc.constantFrom('a', 'a', 'a', 'b', 'b', 'c', 'd', 'e', 'f', undefined),
      // Where it begins, from behind the last number of the queue: repeated, overlapping, the next ones, or behind a gap.
      from: fc.constantFrom(-9, -4, -2, 0, 0, 0, 0, 1, 3),
      payloads: fc.array(fc.option(fc.nat({ max: 99 }).map((n) => `{"n":${n}}`)), { maxLength: 6 }),
      settlements: fc.array(
        fc.record({
          verb: fc.constantFrom('ack' as const, 'reject' as const, 'requeue' as const),
          of: pool,
          index: fc.nat({ max: 40 }),
        }),
        { maxLength: 3 },
      ),
      mailsMax: fc.nat({ max: 4 }),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

const results: Readonly<Record<number, string>> = {
  200: 'settled',
  404: 'not_found',
  409: 'already_settled',
};
const idOf = (text: string): Buffer => parseUuid(text) ?? Buffer.alloc(16);

/** One device with its model, asked in one way. */
class Subject {
  readonly device: DeviceKey;
  readonly model = new DeviceModel(mailsMax);
  readonly #keys = Array.from({ length: keysPerRun }, () => generateUuid());
  readonly #way: () => Shard;

  constructor(device: DeviceKey, way: () => Shard) {
    this.device = device;
    this.#way = way;
  }

  /** What its waiting mail counts for. */
  get bytes(): number {
    const { mails, delayed } = this.model;
    return [...mails, ...delayed].reduce((sum, { payload }) => sum + waitingBytesOf(payload.length), 0);
  }

  async run(operation: Operation): Promise<void> {
    const { device, model } = this;
    const shard = this.#way();
    const size = (): number => model.mails.length;
    switch (operation.type) {
      case 'enqueue':
        return this.#enqueue(operation);
      case 'settle': {
        const id = this.#pick(operation);
        const result = results[model.settle(operation.verb, id)];
        const answer = await shard.mail.settle({ device, mailId: idOf(id), verb: operation.verb });
        expect(answer).toEqual({ result, mailboxSize: size() });
        return;
      }
      case 'sync':
        return this.#sync(operation);
      case 'withdraw': {
        const id = this.#pick(operation);
        const result = results[model.withdraw(id)]?.replace(/^settled$/, 'withdrawn');
        const answer = await shard.mail.withdraw(device, idOf(id));
        expect(answer).toEqual({ result, mailboxSize: size() });
        return;
      }
      case 'receipt':
        return this.#checkReceipt(this.#pick(operation));
      case 'replay': {
        const id = this.#pick(operation);
        const isDead = model.deadLetters.some(({ mail }) => mail.id === id);
        const isFull = model.isFull;
        const answer = await shard.deadLetters.replay({
          device,
          mailId: idOf(id),
          ttlSeconds: 3_600,
          mailboxMailsMax: mailsMax,
        });
        expect(answer.result).toBe(!isDead ? 'mail_not_found' : isFull ? 'mailbox_full' : 'queued');
        if (answer.result !== 'queued') return;
        model.replay(id, formatUuid(answer.mailId));
        expect(answer.mailboxSize).toBe(size());
        return;
      }
      case 'drop': {
        const id = this.#pick(operation);
        const left = model.deadLetters.filter(({ mail }) => mail.id !== id);
        const isDead = left.length < model.deadLetters.length;
        model.deadLetters = left;
        expect(await shard.deadLetters.drop(device, idOf(id))).toBe(isDead);
        return;
      }
      case 'fetch': {
        const id = this.#pick(operation);
        model.fetch(id);
        const fetches = [{ mailId: idOf(id), count: 1, firstMs: 1_000 }];
        await shard.devices.noteActivity([{ device, lastSeenMs: 1_000, address: undefined, fetches }]);
        return;
      }
      case 'look': {
        const { size: found, mail } = await shard.mail.head(device);
        expect([found, mail && formatUuid(mail.id)]).toEqual([size(), model.head?.id]);
        expect(mail?.payload.toString()).toBe(model.head?.payload);
        expect(await shard.mail.size(device)).toBe(size());
        return;
      }
      case 'send': {
        const { kind, payload, key } = operation;
        const keyText = key === undefined ? undefined : String(key);
        const outcome = model.send(kind, 'reading', payload, keyText);
        const digest = digestOf(kind.length * 10 + Number(payload.charAt(5)));
        const given = { device, kind, schema: 'reading', payload: Buffer.from(payload) };
        const idempotency = { key: this.#keys[key ?? 0] as Buffer, digest };
        const answer = await shard.log.append(key === undefined ? given : { ...given, idempotency });
        expect(answer).toBe(outcome === 'reused' ? 'key_reused' : outcome);
      }
    }
  }

  async #sync({
    queue: name,
    from,
    payloads,
    settlements,
    mailsMax,
  }: Extract<Operation, { type: 'sync' }>): Promise<void> {
    const { device, model } = this;
    const storedTo = model.queues.find((one) => one.name === name)?.storedTo ?? 0;
    const seq = Math.max(1, storedTo + 1 + from);
    const chosen = settlements.map(({ verb, ...one }) => ({ verb, id: this.#pick(one) }));
    const answer = await this.#way().sync({
      device,
      records: payloads.map((payload) =>
        payload === null
          ? undefined
          : { kind: 'datapoint', schema: 'reading', payload: Buffer.from(payload) },
      ),
      queue: name === undefined ? undefined : { name, seq },
      settlements: chosen.map(({ verb, id }) => ({ verb, mailId: idOf(id) })),
      mail: { mailsMax, bytesMax: 65_536 },
    });
    if (name !== undefined) expect(answer.queue).toEqual(model.queue(name, seq, payloads));
    else {
      expect(answer.queue).toBeUndefined();
      for (const payload of payloads)
        if (payload !== null) model.send('datapoint', 'reading', payload, undefined);
    }
    expect(answer.settled).toEqual(
      chosen.map(({ verb, id }) => ({
        result: results[model.settle(verb, id)],
        mailboxSize: model.mails.length,
      })),
    );
    const { size, mails } = answer.mailbox ?? {};
    expect([size, mails?.map((mail) => [formatUuid(mail.id), mail.payload.toString()])]).toEqual([
      model.mails.length,
      model.mails.slice(0, mailsMax).map(({ id, payload }) => [id, payload]),
    ]);
  }

  async #enqueue({
    payload,
    requeuesMax,
    isDelayed,
    key,
  }: Extract<Operation, { type: 'enqueue' }>): Promise<void> {
    const { device, model } = this;
    const outcome = await this.#way().mail.enqueue(
      mailFor(device, {
        payload: Buffer.from(payload),
        mailboxMailsMax: mailsMax,
        ...(requeuesMax !== undefined && { requeuesMax }),
        ...(isDelayed && { deliverAtMs: Date.now() + farMs }),
        ...(key !== undefined && { replaceKey: key }),
      }),
    );
    const id = outcome.result === 'queued' ? formatUuid(outcome.mailId) : '';
    if (!model.enqueue({ id, name: 'note', payload, requeues: 0, requeuesMax, key }, isDelayed)) {
      expect(outcome).toEqual({ result: 'mailbox_full', mailboxSize: mailsMax });
      return;
    }
    expect(outcome).toMatchObject({ mailboxSize: model.mails.length, repeated: false, isDelayed });
  }

  #pick({ of, index }: { of: string; index: number }): string {
    const { mails, delayed, ended, settled, deadLetters } = this.model;
    const pools: Readonly<Record<string, string[]>> = {
      waiting: mails.map(({ id }) => id),
      delayed: delayed.map(({ id }) => id),
      ended: [...ended.keys()],
      settled: settled.map(({ id }) => id),
      dead: deadLetters.map(({ mail }) => mail.id),
    };
    const ids = pools[of] ?? [];
    return ids[index % Math.max(ids.length, 1)] ?? formatUuid(generateUuid());
  }

  async #checkReceipt(id: string): Promise<void> {
    const receipt = await this.#way().mail.receipt(this.device, idOf(id));
    const expected = this.model.receipt(id);
    expect(receipt && { state: receipt.state, requeues: receipt.requeueCount }).toEqual(expected);
  }

  /** All that there is of the device. */
  async check(store: Store): Promise<void> {
    const { device, model } = this;
    expect(await store.mailIds(device)).toEqual(model.mails.map(({ id }) => id));
    await this.run({ type: 'look' });
    for (const id of [...model.ended.keys(), ...model.delayed.map((one) => one.id)])
      await this.#checkReceipt(id);
    const { items } = await store.shard.deadLetters.list(fleetId, { device }, '', 1_000);
    expect(items.map(({ mailId, reason }) => [formatUuid(mailId), reason])).toEqual(
      model.deadLetters.map(({ mail, reason }) => [mail.id, reason]),
    );
    const own = (await store.records()).filter((one) => one.device === device && one.kind !== 'receipt');
    expect(
      own.map(({ kind, schema, payload }) => ({ kind, schema, payload: payload.toString('utf8') })),
    ).toEqual(model.records);
  }
}

describe.each(engines)('any sequence on $name', (engine) => {
  const store = useStore(engine);

  it('D13 to D18, D29 to D31: any sequence over several devices at once, and over a restart, agrees with the model', async () => {
    const all: Subject[] = [];
    const sequences = fc.array(fc.array(operation, { minLength: 1, maxLength: 40 }), {
      minLength: devicesPerRun,
      maxLength: devicesPerRun,
    });
    await fc.assert(
      fc.asyncProperty(sequences, sequences, fc.boolean(), async (before, after, isReopened) => {
        const subjects = before.map(() => {
          const device = deviceKeyOf(fleetId, `D${String(all.length).padStart(9, '0')}`);
          const subject = new Subject(device, all.length % 2 ? () => store.shard : () => store.elsewhere);
          all.push(subject);
          return subject;
        });
        for (const { device } of subjects) {
          await store.create(device);
          await expect.poll(() => store.elsewhere.devices.credentials(device)).toBeDefined();
        }
        const runAll = (all: Operation[][]): Promise<unknown> =>
          Promise.all(
            subjects.map(async (subject, which) => {
              for (const one of all[which] ?? []) await subject.run(one);
            }),
          );
        await runAll(before);
        if (isReopened) await store.reopen();
        await runAll(after);
        for (const subject of subjects) {
          // Changes made elsewhere may be some moments behind.
          await vi.waitFor(() => subject.check(store), { timeout: 60_000, interval: 20 });
        }
        expect(await store.shard.mail.bytesOfFleet(fleetId)).toBe(
          all.reduce((sum, { bytes }) => sum + bytes, 0),
        );
      }),
      { numRuns: 12, endOnFailure: true },
    );
  });
});
