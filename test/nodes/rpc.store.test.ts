/** Calls of nodes to the leader: `rpc-client.ts`, `rpc-server.ts` and the services behind them. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ApiError } from '../../src/core/errors.ts';
import { callsMax, RpcClient, requestBytesMax } from '../../src/nodes/rpc-client.ts';
import { answerBytesMax, type Method, RpcServer } from '../../src/nodes/rpc-server.ts';
import {
  methodsOf,
  type RemoteServices,
  remoteServices,
} from '../../src/server/control-plane/remote-services.ts';
import { Database } from '../../src/storage/postgres/connection/database.ts';
import { clockMs } from '../../src/storage/postgres/connection/database-time.ts';
import { migrate } from '../../src/storage/postgres/schema/migrate.ts';
import { withTypeScript } from '../harness/machine/typescript.ts';
import { createMigrated, Postgres } from '../harness/postgres/postgres.ts';

const timeoutMilliseconds = 20_000;
const answeringNode = new URL('answering-node.ts', import.meta.url).pathname;

async function failureOf(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiError)) throw new Error(`not an error of the API: ${String(error)}`);
  return error;
}

describe('calls between nodes', () => {
  let url: string;
  let database: Database;
  /** Log lines of the nodes. */
  let lines: string[];
  let closing: { close(): Promise<void> }[];

  beforeEach(async () => {
    url = await createMigrated();
    lines = [];
    closing = [];
    database = newDatabase();
  });
  afterEach(async () => {
    for (const one of closing.reverse()) await one.close();
  });

  const newLog = () => pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const closed = <T extends { close(): Promise<void> }>(one: T): T => {
    closing.push(one);
    return one;
  };
  const newDatabase = (): Database =>
    closed(new Database({ url, connectionsMax: 4, timeoutMilliseconds, log: newLog() }));
  const newCaller = (): RpcClient => closed(new RpcClient({ database: newDatabase(), log: newLog() }));
  const newAnswerer = (methods: Record<string, Method>): RpcServer =>
    closed(
      new RpcServer({
        database: newDatabase(),
        log: newLog(),
        methods: new Map(Object.entries(methods)),
      }),
    );
  const rows = async (): Promise<number> => {
    const [row] = await database.query<{ rows: number }>(
      'SELECT (SELECT count(*) FROM call) + (SELECT count(*) FROM call_answer) AS rows',
    );
    return row?.rows ?? Number.NaN;
  };

  it('many of two nodes at once are each answered once, and leave nothing behind', async () => {
    const [one, other] = [newCaller(), newCaller()];
    const asked: unknown[] = [];
    newAnswerer({
      double: async ([number]) => {
        asked.push(number);
        if (Number(number) % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
        return 2 * Number(number);
      },
    });
    const numbers = Array.from({ length: 1_600 }, (_, number) => number);
    const answers = await Promise.all(
      numbers.map((number) =>
        (number % 2 === 0 ? one : other).call('double', [number], { timeoutMilliseconds }),
      ),
    );
    expect(answers).toEqual(numbers.map((number) => 2 * number));
    expect(asked).toHaveLength(numbers.length);
    expect(new Set(asked).size).toBe(numbers.length);
    await expect.poll(rows).toBe(0);
    expect(lines).toEqual([]);
  });

  it('values come across as they are', async () => {
    const caller = newCaller();
    newAnswerer({ same: async (given) => given });
    const given = [
      'text \u0000 \u{1f600}',
      undefined,
      null,
      { absent: undefined, payload: Buffer.from([0, 255]), nested: [{ at: 2 ** 47 + 1, ratio: 0.1 }] },
      new Uint8Array([1, 2, 3]),
      Number.POSITIVE_INFINITY,
      -1,
      true,
      [],
      {},
      'x'.repeat(3_000_000),
    ];
    const answer = (await caller.call('same', given, { timeoutMilliseconds })) as unknown[];
    expect(Buffer.from(answer[4] as Uint8Array)).toEqual(Buffer.from([1, 2, 3]));
    expect(Object.hasOwn(answer[3] as object, 'absent')).toBe(true);
    expect(answer.toSpliced(4, 1)).toEqual(given.toSpliced(4, 1));
    expect(await caller.call('same', [], { timeoutMilliseconds })).toEqual([]);
  });

  it('an error of the API comes across with what it says; any other is logged there and says nothing', async () => {
    const caller = newCaller();
    newAnswerer({
      refuse: async () => {
        throw new ApiError('batch_not_found');
      },
      invalid: async () => {
        throw new ApiError('invalid_action', { msg: 'No.', errors: [{ path: '/on', msg: 'is empty' }] });
      },
      busy: async () => {
        throw new ApiError('unavailable', { msg: 'Busy.', retryAfterSeconds: 7 });
      },
      fail: async () => {
        throw new Error('a secret of the inside');
      },
      odd: async () => () => {},
    });
    const ask = (method: string) => failureOf(caller.call(method, [], { timeoutMilliseconds }));
    expect(await ask('refuse')).toMatchObject({ code: 'batch_not_found', status: 404 });
    expect(await ask('invalid')).toMatchObject({
      code: 'invalid_action',
      message: 'No.',
      options: { errors: [{ path: '/on', msg: 'is empty' }] },
    });
    expect(await ask('busy')).toMatchObject({ code: 'unavailable', options: { retryAfterSeconds: 7 } });
    expect(lines).toEqual([]);
    const failed = await ask('fail');
    expect(failed.code).toBe('internal_error');
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect(lines.join()).toContain('a secret of the inside');
    expect(lines.join()).toContain(failed.options.requestId);
    expect((await ask('constructor')).code).toBe('unavailable');
  });

  it('without a leader a call ends in time, and is not run by a later one', async () => {
    const caller = newCaller();
    const failure = await failureOf(caller.call('count', [], { timeoutMilliseconds: 300 }));
    expect(failure).toMatchObject({ code: 'unavailable', status: 503, options: { retryAfterSeconds: 5 } });
    // Its time begins in the database when it is written down there: on a busy machine that is later than its caller's.
    const inTime = `SELECT count(*) AS calls FROM call WHERE until_ms > ${clockMs}`;
    await expect.poll(() => database.query(inTime)).toEqual([{ calls: 0 }]);
    let count = 0;
    newAnswerer({ count: async () => ++count });
    expect(await caller.call('count', [], { timeoutMilliseconds })).toBe(1);
    // One that is still waited for is.
    await closing.pop()?.close();
    const waiting = caller.call('count', [], { timeoutMilliseconds });
    await expect.poll(rows).toBe(1);
    newAnswerer({ count: async () => ++count });
    expect(await waiting).toBe(2);
    await expect.poll(rows).toBe(0);
  });

  it('a signal ends what a method waits for, whose answer still comes', async () => {
    const caller = newCaller();
    const begun: boolean[] = [];
    const wait: Method = (_, signal) =>
      new Promise((resolve) => {
        begun.push(signal.aborted);
        if (signal.aborted) resolve('at once');
        else signal.addEventListener('abort', () => resolve('later'));
      });
    newAnswerer({ wait });
    const controller = new AbortController();
    const waiting = caller.call('wait', [], { timeoutMilliseconds, signal: controller.signal });
    await expect.poll(() => begun).toEqual([false]);
    controller.abort();
    expect(await waiting).toBe('later');
    expect(await caller.call('wait', [], { timeoutMilliseconds, signal: controller.signal })).toBe('at once');
    // The time that a call has ends it there too.
    expect((await failureOf(caller.call('wait', [], { timeoutMilliseconds: 500 }))).code).toBe('unavailable');
    await closing.pop()?.close();
    // Nobody took it: nobody does.
    const another = new AbortController();
    const untaken = caller.call('wait', [], { timeoutMilliseconds, signal: another.signal });
    await expect.poll(rows).toBe(1);
    another.abort();
    await expect
      .poll(async () => (await database.query('SELECT 1 FROM call WHERE request IS NULL')).length)
      .toBe(1);
    const before = begun.length;
    newAnswerer({ wait });
    await expect.poll(rows).toBe(0);
    expect((await failureOf(untaken)).code).toBe('unavailable');
    expect(begun).toHaveLength(before);
  });

  it('one who stops answers what it has taken', async () => {
    const caller = newCaller();
    let isBegun = false;
    const answerer = newAnswerer({
      wait: (_, signal) =>
        new Promise((resolve) => {
          isBegun = true;
          signal.addEventListener('abort', () => setTimeout(resolve, 50, 'ended'));
        }),
    });
    const waiting = caller.call('wait', [], { timeoutMilliseconds });
    await expect.poll(() => isBegun).toBe(true);
    await answerer.close();
    expect(await waiting).toBe('ended');
  });

  it('what is too large, or too much at once, is refused and harms no other', async () => {
    const caller = newCaller();
    newAnswerer({ bytes: async ([length]) => Buffer.alloc(Number(length)), none: async () => undefined });
    const large = Buffer.alloc(requestBytesMax);
    expect((await failureOf(caller.call('none', [large], { timeoutMilliseconds }))).code).toBe(
      'request_too_large',
    );
    const answer = failureOf(caller.call('bytes', [answerBytesMax], { timeoutMilliseconds }));
    expect((await answer).code).toBe('limit_reached');
    const many = Array.from({ length: callsMax + 50 }, () =>
      caller.call('none', [], { timeoutMilliseconds }),
    );
    const outcomes = await Promise.allSettled(many);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(callsMax);
    expect(await caller.call('none', [], { timeoutMilliseconds })).toBe(undefined);
  });

  it('of what a node had taken that was killed nothing is done twice, and another answers the rest', async () => {
    const caller = newCaller();
    const child = spawn(process.execPath, [...withTypeScript, answeringNode, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => said.push(line));
    try {
      await expect.poll(() => said).toContain('ready');
      const ask = (numbers: readonly number[], milliseconds = timeoutMilliseconds) =>
        numbers.map((number) => caller.call('count', [number], { timeoutMilliseconds: milliseconds }));
      expect(await Promise.all(ask([0, 2, 4]))).toEqual([0, 2, 4]);
      const lost = Promise.all(ask([1, 3, 5], 3_000).map(failureOf));
      await expect.poll(() => said.toSorted()).toEqual(['0', '1', '2', '3', '4', '5', 'ready']);
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      const left = Promise.all(ask([6, 7]));
      const taken: unknown[] = [];
      newAnswerer({
        count: async ([number]) => {
          taken.push(number);
          return number;
        },
      });
      expect(await left).toEqual([6, 7]);
      expect((await lost).map(({ code }) => code)).toEqual(['unavailable', 'unavailable', 'unavailable']);
      expect(taken.sort()).toEqual([6, 7]);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('a database that restarts ends calls in time and no node', async () => {
    const postgres = await Postgres.start();
    onTestFinished(() => postgres[Symbol.asyncDispose]());
    url = await postgres.create();
    await migrate(newDatabase());
    const caller = newCaller();
    newAnswerer({ same: async ([value]) => value });
    expect(await caller.call('same', [1], { timeoutMilliseconds })).toBe(1);
    await postgres.end();
    expect((await failureOf(caller.call('same', [2], { timeoutMilliseconds }))).code).toBe('unavailable');
    await postgres.begin();
    await expect.poll(() => caller.call('same', [3], { timeoutMilliseconds }).catch(() => undefined)).toBe(3);
  });

  it('a control of the node with the jobs is used from another as its own', async () => {
    const caller = newCaller();
    const released: unknown[] = [];
    const records = [
      {
        position: 3,
        id: Buffer.alloc(16, 7),
        device: 'FLEET001DEVICE0001',
        kind: 'message',
        schema: 'note',
        storedAtMs: 5,
        payload: Buffer.from('{"a":1}'),
      },
    ];
    // Only those of the controls that this test asks for.
    const controls = {
      actionWork: { list: (fleetId: string) => [{ fleetId }] },
      broadcasts: {
        put: async (_fleetId: string, request: unknown) => ({ status: request, isReplay: false }),
      },
      consumers: {
        list: async () => {
          throw new ApiError('fleet_not_found');
        },
        fetch: async (_fleetId: string, name: string, _fetch: unknown, signal: AbortSignal) => {
          if (name === 'asleep') return 'paused';
          if (name === 'empty') {
            if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
            return undefined;
          }
          return { id: 'batch', shard: 1, records, expiresAtMs: 9, release: () => true, other: () => {} };
        },
        release: async (...given: unknown[]) => {
          if (released.length > 0) throw new ApiError('batch_not_found');
          released.push(given);
          return 1;
        },
      },
      forwarderWork: {},
    } as unknown as RemoteServices;
    newAnswerer(Object.fromEntries(methodsOf(controls)));
    const remote = remoteServices(caller, {
      current: { requestTimeoutSeconds: timeoutMilliseconds / 1_000 },
    });

    expect(await remote.actionWork.list('FLEET001')).toEqual([{ fleetId: 'FLEET001' }]);
    const request = {
      name: 'go',
      payload: new Uint8Array([1]),
      to: { filter: { fleetId: 'FLEET001' }, as: { all: true as const } },
    };
    const { status } = await remote.broadcasts.put('FLEET001', request);
    expect(status).toEqual({ ...request, payload: Buffer.from([1]) });
    expect((await failureOf(remote.consumers.list('FLEET001'))).code).toBe('fleet_not_found');

    const fetch = { recordsMax: 10, worker: 'w' };
    const batch = await remote.consumers.fetch('FLEET001', 'full', fetch, new AbortController().signal);
    expect(batch).toMatchObject({ id: 'batch', shard: 1, records, expiresAtMs: 9 });
    if (typeof batch !== 'object') throw new Error('there is one');
    expect(await batch.release()).toBe(true);
    expect(await batch.release()).toBe(false);
    expect(released).toEqual([['FLEET001', 'full', 'batch']]);
    const now = AbortSignal.abort();
    expect(await remote.consumers.fetch('FLEET001', 'asleep', fetch, now)).toBe('paused');
    const gone = new AbortController();
    const empty = remote.consumers.fetch('FLEET001', 'empty', fetch, gone.signal);
    setTimeout(() => gone.abort(), 100);
    expect(await empty).toBe(undefined);
    expect(await remote.consumers.fetch('FLEET001', 'empty', fetch, now)).toBe(undefined);

    for await (const one of remote.consumers.all()) expect(one).toBe(undefined);
    expect(remote.broadcasts.active).toBe(0);
  });
});
