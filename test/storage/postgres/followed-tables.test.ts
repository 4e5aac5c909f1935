import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { ReplicatedStore } from '../../../src/nodes/replicated-store.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { createMigrated } from '../../harness/postgres.ts';

const log = createLog('silent');

/** Two nodes that share a table. */
async function openNodes(): Promise<[ReplicatedStore, ReplicatedStore]> {
  const url = await createMigrated();
  const database = new Database({ url, connectionsMax: 4, timeoutMilliseconds: 10_000, log });
  const open = (): Promise<ReplicatedStore> =>
    ReplicatedStore.open({ database, store: 'registry', tables: ['fleets'], log });
  const nodes: [ReplicatedStore, ReplicatedStore] = [await open(), await open()];
  onTestFinished(async () => {
    for (const node of nodes) await node.close();
    await database.close();
  });
  return nodes;
}

const put = (node: ReplicatedStore, key: string): Promise<void> =>
  node.exclusively(() => node.write(() => void node.rows('fleets').put(Buffer.from(key), Buffer.from('{}'))));

it('a node whose threads are slow to hear of a change holds up no other node', async () => {
  const [one, other] = await openNodes();
  let release = (): void => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  let heard = 0;
  other.onChange(async (changes) => {
    heard += changes.length;
    await isReleased;
  });
  await put(one, 'FLEET001');
  const own = put(other, 'FLEET002');
  await expect.poll(() => heard).toBe(1);
  await put(one, 'FLEET003');
  release();
  await own;
  for (const node of [one, other]) {
    await node.catchUp();
    expect([...node.rows('fleets').keys()].map(String)).toEqual(['FLEET001', 'FLEET002', 'FLEET003']);
  }
});
