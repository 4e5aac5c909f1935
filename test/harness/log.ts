import { join } from 'node:path';
import { deviceIdOf, fleetIdOf } from '../../src/core/identity.ts';
import { readLog } from '../../src/shard/ingest-log.ts';
import type { Environment } from '../../src/store/environment.ts';
import { openEnvironment } from './environment.ts';
import type { ServerReport } from './server.ts';

export interface StoredRecord {
  fleetId: string;
  deviceId: string;
  kind: string;
  schema: string;
  payload: string;
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

/** Every record that devices sent, in the ingest logs of a data folder whose server has ended, shard by shard, in order. */
export async function readRecords(report: ServerReport): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  await eachShard(report, (environment) => {
    for (const { device, kind, schema, payload } of readLog(environment.table('log'))) {
      if (kind === 'receipt') continue;
      records.push({
        fleetId: fleetIdOf(device),
        deviceId: deviceIdOf(device),
        kind,
        schema,
        payload: payload.toString('utf8'),
      });
    }
  });
  return records;
}
