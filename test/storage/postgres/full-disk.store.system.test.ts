/** A database on a full disk. */

import { expect, it } from 'vitest';
import { ApiError } from '../../../src/core/errors.ts';
import { SmallDisk } from '../../harness/machine/small-disk.ts';
import { giveAway, Postgres } from '../../harness/postgres/postgres.ts';
import { device, ShardNode } from './shard-node.ts';

/** How a write ended: an outcome, or the code of the refusal. */
async function endOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.code;
  }
}

it('a database whose disk is full refuses what does not fit, and takes it when there is room', async () => {
  await using postgres = await Postgres.start();
  using disk = new SmallDisk(64);
  giveAway(disk.path);
  const url = await postgres.create();
  const name = new URL(url.replace('@/', '@host/')).pathname.slice(1);
  await postgres.run(
    `CREATE TABLESPACE small LOCATION '${disk.path}'`,
    `ALTER DATABASE ${name} SET TABLESPACE small`,
  );
  {
    await using node = await ShardNode.open(url);
    disk.fill();
    const large = Buffer.alloc(60_000, 'x');
    await expect.poll(() => endOf(node.ingest(large)), { timeout: 30_000, interval: 1 }).toBe('unavailable');
    expect(node.lines.join()).toContain('"code":"53100"');
    expect(await node.shard.devices.credentials(device)).toBeDefined();
    disk.makeRoom();
    await expect.poll(() => endOf(node.ingest())).toBe('stored');
  }
  await postgres.run(`DROP DATABASE ${name} WITH (FORCE)`, 'DROP TABLESPACE small');
});
