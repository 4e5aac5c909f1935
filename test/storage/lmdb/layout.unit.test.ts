import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { temporaryFolder } from '../../harness/server/server.ts';
import { bytesOf, copiedShard, copyRows, openStored, rowsOf, storedShard } from '../stored/stored-shard.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('each kind of record is read from the bytes that it was stored as, and written as the same', async () => {
  const stored = await openStored(`${folder}/stored`, storedShard);
  const written = await openStored(`${folder}/written`, { times: storedShard.times ?? [] });
  try {
    for (const part of written.parts)
      await copyRows(rowsOf(stored.part(part.name)), part, written.environment);
    // Counted again at the end of a copy.
    expect({ ...bytesOf(written.environment), counts: storedShard.counts }).toEqual(copiedShard);
  } finally {
    await stored.environment.close();
    await written.environment.close();
  }
});
