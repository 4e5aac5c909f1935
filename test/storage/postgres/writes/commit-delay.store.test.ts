/** When the writer begins a transaction, and what goes into it. */

import { expect, it } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { WorkerMetrics } from '../../../../src/core/telemetry/worker-metrics.ts';
import { newDevice } from '../../../../src/domain/devices/new-device.ts';
import { Database } from '../../../../src/storage/postgres/connection/database.ts';
import { openPostgresShard } from '../../../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../../../src/storage/postgres/writes/postgres-shard.ts';
import { createServed } from '../../../harness/postgres/postgres.ts';
import { optionsOf } from '../../contract/postgres-engine.ts';
import { deviceOf, mailFor } from '../mail-node.ts';

/** Longer than any test: what waits for it is not there in time. */
const forever = 600_000;
const callers = 16;

/** Sizes of the commits, in order. */
class Commits extends WorkerMetrics {
  readonly writes: number[] = [];

  constructor() {
    super([], WorkerMetrics.allocate([]));
  }

  override committed(writes: number): void {
    super.committed(writes);
    this.writes.push(writes);
  }
}

interface Opened extends AsyncDisposable {
  url: string;
  shard: PostgresShard;
  commits: Commits;
}

async function open(): Promise<Opened> {
  const commits = new Commits();
  const url = await createServed();
  // Nothing of its own is written meanwhile.
  const options = optionsOf(url, { sweepMilliseconds: forever });
  const shard = await openPostgresShard({ ...options, metrics: commits, commitDelayMilliseconds: forever });
  return { url, shard, commits, [Symbol.asyncDispose]: () => shard.close() };
}

const send = ({ shard }: Opened, device = deviceOf(1)) => shard.mail.enqueue(mailFor(device));

it('a write begins at once where there are few', async () => {
  await using opened = await open();
  for (let time = 0; time < 3; time += 1) await send(opened);
  await Promise.all(Array.from({ length: 7 }, () => send(opened)));
  await send(opened);
  expect(opened.commits.writes).toEqual([1, 1, 1, 7, 1]);
});

it('who was just answered has the time to send the next write, and all those share a transaction', async () => {
  await using opened = await open();
  const call = async (caller: number): Promise<void> => {
    for (let time = 0; time < 4; time += 1) {
      await send(opened);
      await new Promise((resolve) => setTimeout(resolve, (caller + time) % 4));
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  expect(opened.commits.writes).toEqual([callers, callers, callers, callers]);
});

it('a transaction that waits for a lock does not hold up writes to other devices', async () => {
  await using opened = await open();
  const made = [0, 1].map(() => newDevice('FLEET001', {}).device);
  await opened.shard.devices.create(made);
  const [locked = deviceOf(1), other = deviceOf(1)] = made.map(({ device }) => device);
  const { url } = opened;
  const database = new Database({
    url,
    connectionsMax: 1,
    timeoutMilliseconds: 60_000,
    log: createLog('silent'),
  });
  const sent = await database.transaction(async (transaction) => {
    await transaction.query('SELECT 1 FROM mailbox WHERE device = $1 FOR UPDATE', [locked]);
    const outcomes = [send(opened, locked)];
    await new Promise(setImmediate);
    expect(await send(opened, other)).toMatchObject({ result: 'queued' });
    await transaction.commit();
    return outcomes;
  });
  expect(await Promise.all(sent)).toMatchObject([{ result: 'queued' }]);
  await database.close();
});
