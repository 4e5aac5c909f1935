import { join } from 'node:path';
import { Client } from 'pg';
import { type DeviceKey, deviceIdOf, fleetIdOf } from '../../../src/core/identity.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { readLog } from '../../../src/storage/lmdb/log/ingest-log.ts';
import { databaseOf, type ServerReport } from '../server/server.ts';
import { openEnvironment } from './environment.ts';

export interface StoredRecord {
  fleetId: string;
  deviceId: string;
  kind: string;
  schema: string;
  payload: string;
}

/** Fields of a record in a log. */
export interface LoggedRecord {
  position: number;
  kind: string;
  schema: string;
  device: DeviceKey;
  payload: Buffer;
}

/** Opens the shards of a data folder whose server has ended, one after another. */
export async function eachShard(
  report: ServerReport,
  visit: (environment: Environment) => void | Promise<void>,
): Promise<void> {
  for (let shard = 0; shard < report.shards; shard += 1) {
    const environment = openEnvironment(join(report.data, 'shards', String(shard)));
    await visit(environment);
    await environment.close();
  }
}

/** Looks past the server at what its database has. */
export async function queryDatabase<T extends object>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** The log of each shard of a server that has ended, on whatever engine, from its front or that position on. */
export async function eachLog(
  report: ServerReport,
  visit: (records: Iterable<LoggedRecord>, shard: number) => void,
  positionOf: (shard: number) => number = () => 0,
): Promise<void> {
  const url = databaseOf(report.data);
  if (url !== undefined) {
    const text = `SELECT position::int, kind, schema, device, payload FROM record WHERE position >= $1 ORDER BY position`;
    visit(await queryDatabase<LoggedRecord>(url, text, [positionOf(0)]), 0);
    return;
  }
  let shard = 0;
  await eachShard(report, (environment) => {
    visit(readLog(environment.table('log'), positionOf(shard)), shard);
    shard += 1;
  });
}

/** Every record that devices sent, in the ingest logs of a server that has ended, shard by shard, in order. */
export async function readRecords(report: ServerReport): Promise<StoredRecord[]> {
  const found: StoredRecord[] = [];
  await eachLog(report, (records) => {
    for (const { device, kind, schema, payload } of records) {
      if (kind === 'receipt') continue;
      found.push({
        fleetId: fleetIdOf(device),
        deviceId: deviceIdOf(device),
        kind,
        schema,
        payload: payload.toString('utf8'),
      });
    }
  });
  return found;
}
