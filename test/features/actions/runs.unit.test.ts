import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { sleep } from '../../../src/core/async.ts';
import { unavailable } from '../../../src/core/errors.ts';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { Fleets } from '../../../src/declarations/fleet.ts';
import type { EnqueueOutcome } from '../../../src/domain/mail/mail.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { ActionDeadLetters } from '../../../src/features/actions/outbox/dead-letters.ts';
import { InFlightLimit } from '../../../src/features/actions/outbox/in-flight-limit.ts';
import { Outbox } from '../../../src/features/actions/outbox/outbox.ts';
import {
  areCurrent,
  type Reads,
  readState,
  writeState,
} from '../../../src/features/actions/runs/action-state.ts';
import { RunJournal } from '../../../src/features/actions/runs/run-journal.ts';
import { openJournal } from '../../../src/maintenance/environments.ts';
import { configWith } from '../../harness/server/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const journal = openJournal(folder, { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 });
afterAll(async () => {
  await journal.close();
  rmSync(folder, { recursive: true });
});

const { tables } = journal;
const set = (action: Buffer, key: string, value: string | null, keysMax = 2): Promise<boolean> => {
  let isWritten = false;
  return journal
    .commit(() => {
      isWritten = writeState(tables, action, [{ key, value }], keysMax);
    })
    .then(() => isWritten);
};

it('a run that has read two versions of a key is not current, whichever it read last', async () => {
  const action = generateUuid();
  const reads: Reads = new Map();
  await set(action, 'count', '1');
  journal.refresh();
  expect(readState(tables, action, 'count', reads)).toBe('1');
  await set(action, 'count', '2');
  journal.refresh();
  expect(readState(tables, action, 'count', reads)).toBe('2');
  expect(areCurrent(tables, action, reads)).toBe(false);
});

it('a state takes as many keys as it may have, and those it has may always be written', async () => {
  const action = generateUuid();
  await set(generateUuid(), 'of another', '1');
  expect(await set(action, 'a', '1')).toBe(true);
  expect(await set(action, 'b', '1')).toBe(true);
  expect(await set(action, 'c', '1')).toBe(false);
  expect(await set(action, 'b', '2')).toBe(true);
  expect(await set(action, 'a', '2', 1)).toBe(true);
  expect(await set(action, 'a', null)).toBe(true);
  expect(await set(action, 'c', '1')).toBe(true);
});

it('what waits for the journal is not kept waiting by those who always write', async () => {
  let isBusy = true;
  const write = async (): Promise<void> => {
    while (isBusy) await journal.commit(() => {});
  };
  // Two that write in turn: something waits at the end of every commit.
  const writers = [write()];
  await new Promise((resolve) => setImmediate(resolve));
  writers.push(write());
  await journal.settled();
  isBusy = false;
  await Promise.all(writers);
});

it('mails of actions take a part of the queue of a shard, in their order, and a large one by itself', async () => {
  const gate = new InFlightLimit(configWith({ shardQueueMax: 8, shardQueueBytesMax: 400 }));
  const leaves: (() => void)[] = [];
  const entered: number[] = [];
  const pass = (number: number, bytes: number): Promise<void> =>
    gate.pass('FLEET001', bytes, () => {
      entered.push(number);
      return new Promise((leave) => leaves.push(leave));
    });
  const passes = [pass(0, 10), pass(1, 10), pass(2, 10), pass(3, 1_000), pass(4, 10)];
  const leave = async (): Promise<void> => {
    leaves.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  await new Promise((resolve) => setImmediate(resolve));
  expect(entered).toEqual([0, 1]);
  await leave();
  expect(entered).toEqual([0, 1, 2]);
  await leave();
  expect(entered).toEqual([0, 1, 2]);
  await leave();
  expect(entered).toEqual([0, 1, 2, 3]);
  await leave();
  expect(entered).toEqual([0, 1, 2, 3, 4]);
  await leave();
  await Promise.all(passes);
});

const outboxOf = (enqueue: () => Promise<EnqueueOutcome>): Outbox => {
  const shard = { mail: { enqueue } } as unknown as Shard;
  const config = configWith();
  const log = createLog('silent');
  const deadLetters = new ActionDeadLetters(journal, () => ({ letters: 10, bytes: 1024 ** 2 }));
  return new Outbox({
    config,
    runJournal: new RunJournal({ config, journal, deadLetters, isDeclared: () => true, log }),
    fleets: { get: () => undefined } as unknown as Fleets,
    shards: { of: () => shard, all: [] },
    log,
  });
};

it('mails of a fleet with many wait for those of others in turns', async () => {
  const gate = new InFlightLimit(configWith({ shardQueueMax: 4, shardQueueBytesMax: 400 }));
  const entered: string[] = [];
  const pass = (fleetId: string, number: number): Promise<void> =>
    gate.pass(fleetId, 10, async () => {
      entered.push(`${fleetId} ${number}`);
    });
  await Promise.all([pass('MANY', 0), pass('MANY', 1), pass('MANY', 2), pass('FEW', 0), pass('MANY', 3)]);
  expect(entered).toEqual(['MANY 0', 'MANY 1', 'FEW 0', 'MANY 2', 'MANY 3']);
});

it('a fleet has its share of the outbox, and leaves others room; what waits for it goes on', async () => {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const outbox = outboxOf(async () => {
    await answered;
    return { result: 'device_not_found' };
  });
  const send = (fleetId: string): Promise<void> => {
    const device = deviceKeyOf(fleetId, 'PUMP000001');
    const record = { id: generateUuid(), device } as unknown as StoredRecord;
    const payload = Buffer.alloc(16_384, 'x');
    const mails = Array.from({ length: 1_000 }, (_, ordinal) => ({ device, name: 'a', payload, ordinal }));
    return outbox.deliver({ key: generateUuid(), entry: { action: generateUuid(), run: 1, record, mails } });
  };
  const deliveries = [send('FLEET001')];
  expect(outbox.isFull('FLEET001')).toBe(false);
  deliveries.push(send('FLEET001'), send('FLEET001'));
  expect(['FLEET001', 'FLEET002'].map((fleet) => outbox.isFull(fleet))).toEqual([true, false]);
  await outbox.room('FLEET002');
  let hasRoom = false;
  const room = outbox.room('FLEET001').then(() => {
    hasRoom = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasRoom).toBe(false);
  answer();
  await room;
  await Promise.all(deliveries);
  expect(outbox.isFull('FLEET001')).toBe(false);
});

it('an outbox that waits to try a mail again stops at once', async () => {
  let attempts = 0;
  const outbox = outboxOf(async () => {
    attempts += 1;
    throw unavailable('It is away.');
  });
  const device = deviceKeyOf('FLEET001', 'PUMP000001');
  const record = { id: generateUuid(), device } as unknown as StoredRecord;
  const sent = { device, name: 'a', payload: Buffer.from('{}'), ordinal: 0 };
  const entry = { action: generateUuid(), run: 1, record, mails: [sent] };
  void outbox.deliver({ key: generateUuid(), entry });
  // From the fourth on it waits for 0.8 s.
  await expect.poll(() => attempts, { timeout: 30_000, interval: 5 }).toBe(4);
  const first = await Promise.race([outbox.stop().then(() => 'stopped'), sleep(600).then(() => 'waited')]);
  expect(first).toBe('stopped');
});
