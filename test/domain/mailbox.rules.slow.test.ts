/** Decisions D13 to D18: any sequence of requests against the model in `model.ts`. */

import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice } from '../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { readRecords } from '../harness/storage/log.ts';
import { DeviceModel } from './model.ts';

const mailsMax = 6;
const devicesPerRun = 3;
const keysPerRun = 4;

/** Index fields are taken modulo what there is at that moment, so that every sequence means something. */
type Operation =
  | { type: 'enqueue'; name: string; payload: string; requeuesMax: number | undefined; isDelayed: boolean }
  | {
      type: 'withdraw' | 'receipt' | 'replay';
      of: 'waiting' | 'delayed' | 'ended' | 'dead' | 'unknown';
      index: number;
    }
  | { type: 'next' | 'head' | 'size' | 'heartbeat' }
  | {
      type: 'settle';
      verb: 'ack' | 'reject' | 'requeue';
      of: 'waiting' | 'settled' | 'unknown';
      index: number;
    }
  | { type: 'send'; kind: 'datapoint' | 'msg'; payload: string; key: number | undefined };

const member = fc.constantFrom(
  '"a":1',
  '"a": 2.50',
  '"a":12345678901234567890',
  '"é":"\\u00e9"',
  '"b":[1e400]',
);
const payload = fc.array(member, { minLength: 1, maxLength: 3 }).map((members) => `{${members.join(' , ')}}`);
const index = fc.nat({ max: 40 });
const verb = fc.constantFrom('ack' as const, 'reject' as const, 'requeue' as const);

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('enqueue' as const),
      name: fc.constantFrom('a', 'b-1', 'C_'),
      payload,
      requeuesMax: fc.constantFrom(undefined, 0, 1),
      isDelayed: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('withdraw' as const, 'receipt' as const, 'receipt' as const, 'replay' as const),
      of: fc.constantFrom(
        'waiting' as const,
        'delayed' as const,
        'ended' as const,
        'dead' as const,
        'unknown' as const,
      ),
      index,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('next' as const, 'head' as const, 'size' as const, 'heartbeat' as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('settle' as const),
      verb,
      of: fc.constantFrom(
        'waiting' as const,
        'waiting' as const,
        'waiting' as const,
        'settled' as const,
        'unknown' as const,
      ),
      index,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('send' as const),
      kind: fc.constantFrom('datapoint' as const, 'msg' as const),
      payload,
      key: fc.option(fc.nat({ max: keysPerRun - 1 }), { nil: undefined }),
    }),
  },
);

const folder = temporaryFolder();
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({}, folder);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** One device with its model, its keys, and a way to one worker after another. */
class Subject {
  device: TestDevice;
  readonly model = new DeviceModel(mailsMax);
  readonly keys = Array.from({ length: keysPerRun }, () => uuidv7());
  #turn = 0;
  #agents = Array.from({ length: 3 }, () => oneConnection(server));

  constructor(device: TestDevice) {
    this.device = device;
  }

  async move(to: TestServer): Promise<void> {
    await this.close();
    this.device = this.device.on(to);
    this.#agents = Array.from({ length: 3 }, () => oneConnection(to));
  }

  async close(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.destroy()));
  }

  #request(method: string, path: string, body?: string, headers?: Record<string, string>) {
    this.#turn += 1;
    return this.device.request(method, path, body, headers, this.#agents[this.#turn % this.#agents.length]);
  }

  #idOf({ of, index }: { of: 'waiting' | 'delayed' | 'ended' | 'dead' | 'unknown'; index: number }): string {
    const { mails, delayed, ended, deadLetters } = this.model;
    const pools = {
      waiting: mails.map(({ id }) => id),
      delayed: delayed.map(({ id }) => id),
      ended: [...ended.keys()],
      dead: deadLetters.map(({ mail }) => mail.id),
      unknown: [],
    };
    return pools[of][index % Math.max(pools[of].length, 1)] ?? uuidv7();
  }

  async #checkReceipt(id: string): Promise<void> {
    const { status, body } = await this.device.server.admin<{ state: string; requeue_count: number }>(
      'GET',
      `${this.device.adminPath}/mail/${id}`,
    );
    const expected = this.model.receipt(id);
    expect(status).toBe(expected === undefined ? 404 : 200);
    if (expected !== undefined) {
      expect({ state: body.state, requeues: body.requeue_count }).toEqual(expected);
    }
  }

  /** Checks the receipt of every mail that there was, and every dead letter. */
  async checkLedger(): Promise<void> {
    const { server, fleetId, deviceId } = this.device;
    const { ended, delayed, deadLetters } = this.model;
    for (const id of [...ended.keys(), ...delayed.map((mail) => mail.id)]) await this.#checkReceipt(id);
    const path = `/fleets/${fleetId}/dead-letters?device_id=${deviceId}&order=oldest&limit=1000`;
    const { body } = await server.admin<{ items: { mail_id: string; reason: string }[] }>('GET', path);
    expect(body.items.map(({ mail_id, reason }) => [mail_id, reason])).toEqual(
      deadLetters.map(({ mail, reason }) => [mail.id, reason]),
    );
  }

  async run(operation: Operation): Promise<void> {
    const { model } = this;
    const size = (): string => String(model.mails.length);
    switch (operation.type) {
      case 'enqueue': {
        const { name, payload, requeuesMax, isDelayed } = operation;
        const query = new URLSearchParams();
        if (requeuesMax !== undefined) query.set('requeues_max', String(requeuesMax));
        if (isDelayed) query.set('deliver_at', new Date(Date.now() + 3_600_000).toISOString());
        const answer = await this.device.sendMail(name, payload, `?${query}`);
        expect(answer.status).toBe(model.isFull && !isDelayed ? 409 : 201);
        if (answer.status !== 201) return;
        (isDelayed ? model.delayed : model.mails).push({
          id: answer.mailId,
          name,
          payload,
          requeues: 0,
          requeuesMax,
        });
        expect(answer.size).toBe(model.mails.length);
        return;
      }
      case 'withdraw': {
        const id = this.#idOf(operation);
        const { status } = await this.device.server.admin('DELETE', `${this.device.adminPath}/mail/${id}`);
        expect(status).toBe(model.withdraw(id));
        return;
      }
      case 'receipt': {
        await this.#checkReceipt(this.#idOf(operation));
        return;
      }
      case 'replay': {
        const id = this.#idOf(operation);
        const letters = [{ device_id: this.device.deviceId, mail_id: id }];
        const path = `/fleets/${this.device.fleetId}/dead-letters:replay`;
        const { body } = await this.device.server.admin<{ items: { result: string; new_mail_id: string }[] }>(
          'POST',
          path,
          { letters },
        );
        const isDead = model.deadLetters.some(({ mail }) => mail.id === id);
        const expected = !isDead ? 'not_found' : model.isFull ? 'mailbox_full' : 'replayed';
        expect(body.items[0]?.result).toBe(expected);
        if (expected === 'replayed') model.replay(id, body.items[0]?.new_mail_id ?? '');
        return;
      }
      case 'next':
      case 'head': {
        const isHead = operation.type === 'head';
        const answer = await this.#request(isHead ? 'HEAD' : 'GET', '/v1/mailbox/next');
        expect(answer.status).toBe(model.head ? 200 : 204);
        expect(answer.headers.get('x-mailbox-size')).toBe(size());
        expect(answer.headers.get('x-mail-id')).toBe(model.head?.id ?? '');
        expect(answer.headers.get('x-mail-name')).toBe(model.head?.name ?? '');
        expect(answer.text).toBe((!isHead && model.head?.payload) || '');
        return;
      }
      case 'size': {
        expect((await this.#request('GET', '/v1/mailbox/size')).json).toEqual({ size: model.mails.length });
        return;
      }
      case 'heartbeat': {
        const answer = await this.#request('POST', '/v1/heartbeat');
        expect(answer.headers.get('x-messages-available')).toBe(String(model.mails.length > 0));
        return;
      }
      case 'settle': {
        const pool =
          operation.of === 'waiting' ? model.mails : operation.of === 'settled' ? model.settled : [];
        const id = pool[operation.index % Math.max(pool.length, 1)]?.id ?? uuidv7();
        const expected = model.settle(operation.verb, id);
        const answer = await this.#request('PUT', `/v1/mailbox/${operation.verb}/${id}`);
        expect(answer.status).toBe(expected);
        expect(answer.headers.get('x-mailbox-size')).toBe(size());
        return;
      }
      case 'send': {
        const key = operation.key === undefined ? undefined : this.keys[operation.key];
        const schema = operation.kind === 'msg' ? 'note' : 'reading';
        const outcome = model.send(operation.kind, schema, operation.payload, key);
        const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key };
        const answer = await this.#request(
          'POST',
          `/v1/${operation.kind}/${schema}`,
          operation.payload,
          headers,
        );
        expect(answer.status).toBe(outcome === 'reused' ? 400 : 201);
        expect(answer.headers.get('idempotent-replayed')).toBe(outcome === 'replayed' ? 'true' : null);
      }
    }
  }
}

it('D13 to D18: any sequence over several devices, connections and a restart agrees with the model', async () => {
  const fleet = await createFleet(server, { mailbox_mails_max: mailsMax });
  const expected = new Map<string, DeviceModel>();
  const sequences = fc.array(fc.array(operation, { minLength: 1, maxLength: 30 }), {
    minLength: devicesPerRun,
    maxLength: devicesPerRun,
  });
  await fc.assert(
    fc.asyncProperty(
      sequences,
      sequences,
      fc.constantFrom('none', 'none', 'stop', 'kill'),
      async (before, after, restart) => {
        const subjects = await Promise.all(before.map(async () => new Subject(await fleet.createDevice())));
        const runAll = (all: Operation[][]): Promise<unknown> =>
          Promise.all(
            subjects.map(async (subject, which) => {
              for (const one of all[which] ?? []) await subject.run(one);
            }),
          );
        await runAll(before);
        if (restart !== 'none') {
          await (restart === 'kill' ? server.kill() : server.stop());
          server = await TestServer.start({}, folder);
          fleet.server = server;
          for (const subject of subjects) await subject.move(server);
        }
        await runAll(after);
        for (const subject of subjects) {
          while (subject.model.head !== undefined) {
            await subject.run({ type: 'next' });
            await subject.run({ type: 'settle', verb: 'ack', of: 'waiting', index: 0 });
          }
          await subject.run({ type: 'next' });
          await subject.checkLedger();
          await subject.close();
          expected.set(subject.device.deviceId, subject.model);
        }
      },
    ),
    { numRuns: Number(process.env.MAILBOX_RUNS ?? 6), endOnFailure: true },
  );
  await server.stop();
  const stored = await readRecords(server.report);
  for (const [deviceId, model] of expected) {
    const records = stored.filter((record) => record.deviceId === deviceId);
    expect(records.map(({ kind, schema, payload }) => ({ kind, schema, payload }))).toEqual(
      model.records.map((record) => ({ ...record, kind: record.kind === 'msg' ? 'message' : record.kind })),
    );
  }
});
