/** Connections to a database that end or carry nothing any more. */

import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { WorkerMetrics } from '../../../../src/core/telemetry/worker-metrics.ts';
import type { Announcement } from '../../../../src/domain/mail/mail.ts';
import type { StreamSink } from '../../../../src/domain/shard-streams.ts';
import { openPostgresShard } from '../../../../src/storage/postgres/writes/open-shard.ts';
import type { PostgresShard } from '../../../../src/storage/postgres/writes/postgres-shard.ts';
import { RelayPath } from '../../../harness/postgres/database-path.ts';
import { Postgres } from '../../../harness/postgres/postgres.ts';
import { configWith } from '../../../harness/server/config.ts';
import { deviceOf, mailFor, prepare } from '../mail-node.ts';

/** A server of their own, which the tests of other files do not miss when it ends. */
let postgres: Postgres;
beforeAll(async () => {
  postgres = await Postgres.start();
});
afterAll(() => postgres[Symbol.asyncDispose]());

async function open(url: string, keepAliveSeconds = 600): Promise<PostgresShard> {
  const shard = await openPostgresShard({
    ...configWith(),
    url,
    connectionsMax: 4,
    timeoutMilliseconds: 1_000,
    keepAliveSeconds,
    retention: {
      retention: () => ({ ttlSeconds: 86_400, bytesMax: 0, fleets: new Map() }),
      bytesElsewhere: () => new Map(),
    },
    metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
    log: createLog('silent'),
  });
  onTestFinished(() => shard.close());
  return shard;
}

it('a server that dies with writes under way has them refused, and is used again when it is back', async () => {
  const url = await postgres.create();
  await prepare(url, 8);
  const shard = await open(url);
  const send = (number: number): Promise<string> =>
    shard.mail.enqueue(mailFor(deviceOf(number))).then(
      ({ result }) => result,
      ({ code }) => code,
    );
  const devices = [1, 2, 3, 4, 5, 6, 7, 8];
  for (let time = 0; time < 3; time += 1) {
    const answers = devices.map(send);
    await postgres.end('SIGKILL');
    for (const answer of await Promise.all(answers)) expect(['queued', 'unavailable']).toContain(answer);
    expect(await send(1)).toBe('unavailable');
    await postgres.begin();
    for (const number of devices) await expect.poll(() => send(number)).toBe('queued');
  }
});

it('a stream that ends while its database is away is not taken for open when that is back', async () => {
  const url = await postgres.create();
  await prepare(url, 2);
  const shard = await open(url, 1);
  const sink = { announce: () => {}, recheck: () => {}, end: () => {} };
  const leave = await shard.streams.subscribe(deviceOf(1), sink);
  const isConnected = () => shard.streams.presence.areConnected([deviceOf(1)]).catch(() => undefined);
  expect(await isConnected()).toEqual([true]);
  await postgres.end('SIGKILL');
  leave();
  await expect(shard.streams.subscribe(deviceOf(1), sink)).rejects.toMatchObject({ code: 'unavailable' });
  await postgres.begin();
  await expect.poll(isConnected).toEqual([false]);
});

it('connections that carry nothing any more, and say nothing of it, are given up: also the one that listens', async () => {
  await using path = await RelayPath.start();
  path.lead(postgres.socket);
  const url = await postgres.create();
  await prepare(url, 1);
  const [, name] = /\/(test_[0-9a-f]+)/.exec(url) ?? [];
  const stranded = await open(`postgres://postgres@127.0.0.1:${path.port}/${name}`);
  const other = await open(url);
  const announced: Announcement[] = [];
  const sink: StreamSink = {
    announce: (announcement) => void announced.push(announcement),
    end: () => {},
    recheck: () => {},
  };
  await stranded.streams.subscribe(deviceOf(1), sink);
  await other.mail.enqueue(mailFor(deviceOf(1)));
  await expect.poll(() => announced.length).toBe(1);
  path.strand();
  await other.mail.enqueue(mailFor(deviceOf(1)));
  await expect.poll(() => announced.length).toBe(2);
  await other.mail.enqueue(mailFor(deviceOf(1)));
  await expect.poll(() => announced.length).toBe(3);
});
