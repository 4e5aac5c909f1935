import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { unavailable } from '../../src/core/errors.ts';
import { createLog } from '../../src/core/telemetry/log.ts';
import { ReplicatedStore } from '../../src/nodes/replicated-store.ts';
import { Database, type Row } from '../../src/storage/postgres/connection/database.ts';
import { createMigrated } from '../harness/postgres/postgres.ts';

const log = createLog('silent');

/** A database as its node meets it: away, or slow to hand over what it has read. */
class NodeDatabase extends Database {
  isAway = false;
  afterPage: () => Promise<void> = async () => {};

  override async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    if (this.isAway) throw unavailable('The database is away.');
    const rows = await super.query<T>(text, values);
    if (text.includes('LIMIT')) await this.afterPage();
    return rows;
  }
}

/** Its clock is ahead by what `faked.ahead` has: as if the nodes had been suspended for so many hours. */
async function fakeClock(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`
    CREATE SCHEMA faked;
    CREATE TABLE faked.ahead AS SELECT 0 AS hours;
    CREATE FUNCTION faked.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(hours => hours) FROM faked.ahead'`);
  // In front of the catalog, which else comes first.
  await client.query(`ALTER DATABASE ${client.database} SET search_path = faked, pg_catalog, public`);
  await client.end();
}

/** Two nodes that share a table. */
async function openNodes() {
  const url = await createMigrated();
  await fakeClock(url);
  const options = { url, connectionsMax: 4, timeoutMilliseconds: 10_000, log };
  const databases = [new Database(options), new NodeDatabase(options)] as const;
  const open = (database: Database): Promise<ReplicatedStore> =>
    ReplicatedStore.open({ database, store: 'registry', tables: ['fleets'], log });
  const nodes = [await open(databases[0]), await open(databases[1])] as const;
  onTestFinished(async () => {
    for (const node of nodes) await node.close();
    for (const database of databases) await database.close();
  });
  const wait = (hours: number) => databases[0].query('UPDATE faked.ahead SET hours = hours + $1', [hours]);
  // As the nodes do now and then with what was removed more than an hour ago.
  const prune = () => databases[0].query('DELETE FROM stored WHERE value IS NULL');
  return [nodes[0], nodes[1], { database: databases[1], wait, prune }] as const;
}

const put = (node: ReplicatedStore, key: string, value = '{}'): Promise<void> =>
  node.exclusively(() =>
    node.write(() => void node.rows('fleets').put(Buffer.from(key), Buffer.from(value))),
  );
const valueIn = (node: ReplicatedStore, key: string) => node.rows('fleets').get(Buffer.from(key))?.toString();

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

it('a node that was suspended for longer than removed rows are kept misses no removal', async () => {
  const [one, other, { database, wait, prune }] = await openNodes();
  await put(one, 'FLEET001');
  await expect.poll(() => valueIn(other, 'FLEET001')).toBe('{}');
  database.isAway = true;
  await one.exclusively(() => one.write(() => void one.rows('fleets').delete(Buffer.from('FLEET001'))));
  await wait(2);
  await prune();
  database.isAway = false;
  await expect.poll(() => valueIn(other, 'FLEET001')).toBeUndefined();
});

it('a node that reloads keeps what it changes meanwhile itself', async () => {
  const [one, other, { database, wait }] = await openNodes();
  await put(one, 'FLEET001', 'old');
  await expect.poll(() => valueIn(other, 'FLEET001')).toBe('old');
  let pages = 0;
  database.afterPage = async () => {
    pages += 1;
    if (pages === 1) await put(other, 'FLEET001', 'new');
  };
  await wait(2);
  await expect.poll(() => pages).toBeGreaterThan(0);
  await put(one, 'FLEET002');
  await expect.poll(() => valueIn(other, 'FLEET002')).toBe('{}');
  expect([one, other].map((node) => valueIn(node, 'FLEET001'))).toEqual(['new', 'new']);
});
