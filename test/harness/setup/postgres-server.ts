import { createLog } from '../../../src/core/telemetry/log.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { migrate } from '../../../src/storage/postgres/schema/migrate.ts';
import { openPostgresShard } from '../../../src/storage/postgres/writes/open-shard.ts';
import { optionsOf } from '../../storage/contract/postgres-engine.ts';
import { migratedTemplate, Postgres, servedTemplate } from '../postgres/postgres.ts';

/** Nothing kills this one, so what it answers need not be written first; nor has it the time to tidy up. */
const settings = [
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_wal_size=128MB',
  'autovacuum=off',
  // Several tests run at once in each of several processes, with two nodes each.
  'max_connections=400',
];

async function startServer(): Promise<Postgres> {
  const postgres = await Postgres.start(settings);
  const url = await postgres.create(migratedTemplate);
  const log = createLog('warn');
  const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 10_000, log });
  await migrate(database);
  await database.close();
  const served = await postgres.create(servedTemplate, migratedTemplate);
  await (await openPostgresShard(optionsOf(served))).close();
  return postgres;
}

/** One server for all files of all projects, which ends with them: each test has a database of its own. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.POSTGRES_FOLDER !== undefined) return;
  const postgres = await startServer();
  process.env.POSTGRES_FOLDER = postgres.folder;
  return () => postgres[Symbol.asyncDispose]();
}
