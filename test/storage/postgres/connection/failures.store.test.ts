/** A database that fails: read-only, full, frozen, or a standby. */

import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiError, OperatorError } from '../../../../src/core/errors.ts';
import { checkUrl } from '../../../../src/storage/postgres/connection/database-url.ts';
import { Postgres } from '../../../harness/postgres/postgres.ts';
import { device, ShardNode } from '../shard-node.ts';

/** How it ended: an outcome, or the code of the refusal and after how long to come again. */
async function endOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.code, error.options.retryAfterSeconds];
  }
}

const refused = ['unavailable', 1];

describe('a database that fails', () => {
  let postgres: Postgres;
  let url: string;

  beforeAll(async () => {
    postgres = await Postgres.start(['max_connections=20', 'superuser_reserved_connections=0']);
  });
  afterAll(() => postgres[Symbol.asyncDispose]());
  beforeEach(async () => {
    url = await postgres.create();
  });

  const works = (node: ShardNode) => expect.poll(() => endOf(node.ingest()));

  it.each([['SIGINT'], ['SIGKILL']] as const)(
    'that ends by %s and starts again is used again, and until then writes and reads are refused',
    async (signal) => {
      await using node = await ShardNode.open(url);
      const ends: unknown[] = [];
      const busy = Array.from({ length: 20 }, async () => {
        while (ends.length < 5_000) {
          const end = await endOf(
            Promise.all([node.ingest(), node.shard.devices.credentials(device)]).then(() => 'done'),
          );
          ends.push(end);
          if (end !== 'done') return;
        }
      });
      await expect.poll(() => ends.length).toBeGreaterThan(100);
      await postgres.end(signal);
      await Promise.all(busy);
      expect(ends.filter((end) => end !== 'done')).toContainEqual(refused);
      expect(await endOf(node.ingest())).toEqual(refused);
      expect(await endOf(node.shard.devices.credentials(device))).toEqual(refused);
      await postgres.begin();
      await works(node).toBe('stored');
      expect(await node.shard.devices.credentials(device)).toBeDefined();
    },
  );

  it('that takes no writes any more refuses them, and is written to again when it does', async () => {
    await using node = await ShardNode.open(url);
    await postgres.run('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
    try {
      await expect.poll(() => endOf(node.ingest())).toEqual(refused);
      expect(await node.shard.devices.credentials(device)).toBeDefined();
    } finally {
      await postgres.run('ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()');
    }
    await works(node).toBe('stored');
    expect(node.lines.join()).toContain('"code":"25006"');
  });

  it('that has no connection left refuses, and is used when it has', async () => {
    await using node = await ShardNode.open(url);
    const crowd: Client[] = [];
    const join = async (): Promise<void> => {
      const client = new Client({ connectionString: url });
      await client.connect();
      crowd.push(client);
    };
    await join();
    try {
      // Those of the node are ended, and others take their places as long as there are any.
      await expect
        .poll(
          async () => {
            await crowd[0]?.query(
              `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'fleetpost%'`,
            );
            while (
              await join().then(
                () => true,
                () => false,
              )
            );
            return [await endOf(node.ingest()), node.lines.join().includes('"code":"53300"')];
          },
          { timeout: 15_000 },
        )
        .toEqual([refused, true]);
    } finally {
      for (const client of crowd) await client.end();
    }
    await works(node).toBe('stored');
  });

  it('that is frozen is waited for with an end, nothing piles up, and it is used when it goes on', async () => {
    await using node = await ShardNode.open(url, { shardQueueMax: 2_000 });
    postgres.freeze();
    try {
      const writes = Array.from({ length: 5_000 }, () => endOf(node.ingest()));
      const reads = Array.from({ length: 15_000 }, () => endOf(node.shard.devices.credentials(device)));
      const others = Array.from({ length: 2_000 }, () =>
        endOf(node.shard.mail.receipt(device, Buffer.alloc(16))),
      );
      expect(node.shard.accepts()).toBe(false);
      const ends = await Promise.all([...writes, ...reads, ...others]);
      expect(new Set(ends.map((end) => JSON.stringify(end)))).toEqual(new Set([JSON.stringify(refused)]));
      expect(node.shard.accepts()).toBe(true);
    } finally {
      postgres.thaw();
    }
    await works(node).toBe('stored');
    expect(await node.shard.devices.credentials(device)).toBeDefined();
  });

  it('that is a standby is not used, since what it knows may be old', async () => {
    await using node = await ShardNode.open(url);
    await node.ingest();
    await postgres.end();
    postgres.write('data/standby.signal', '');
    await postgres.begin();
    for (let n = 0; n < 5; n += 1) {
      expect(await endOf(node.shard.devices.credentials(device))).toEqual(refused);
      expect(await endOf(node.ingest())).toEqual(refused);
    }
    await postgres.run('SELECT pg_promote()');
    await works(node).toBe('stored');
    expect(node.lines.join()).toContain('"code":"STANDBY"');
  });

  it.each([
    ['nonsense', 'cannot be read'],
    ['mysql://hidden:hidden@hidden/hidden', 'cannot be read'],
    ['postgres://hidden:hidden@hidden:1,hidden:2/hidden', 'cannot be read'],
    ['postgres://hidden:hidden@hidden,hidden/hidden', 'several hosts'],
    ['postgres://hidden:%zz@hidden/hidden', '%'],
    ['postgres://hidden@hidden/hidden?port=hidden', 'port'],
    ['postgres://hidden:hidden@hidden/hidden?query_timeout=0', 'no other parameters'],
    ['postgres://hidden:hidden@hidden/hidden?sslmode=require', 'verifies nothing'],
    ['postgres://hidden:hidden@hidden/hidden?sslmode=prefer', 'verifies nothing'],
    ['postgres://hidden:hidden@hidden/hidden?sslmode=no-verify&sslrootcert=/hidden', 'verifies nothing'],
    ['postgres://hidden:hidden@hidden/hidden?sslmode=verify-ca&sslrootcert=system', 'verifies nothing'],
    ['postgres://hidden:hidden@hidden/hidden?sslmode=verify-full&sslrootcert=/hidden', 'sslrootcert'],
    ['postgres://hidden:hidden@hidden/hidden?sslrootcert=/hidden', 'Add sslmode'],
  ])('an URL that cannot be used is refused in words of our own: %s', (text, why) => {
    expect(() => checkUrl(text)).toThrow(OperatorError);
    expect(() => checkUrl(text)).toThrow(why);
    expect(() => checkUrl(text)).not.toThrow('hidden');
  });
});
