import { fleetIdLength, fleetIdPattern } from '../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../core/uuid.ts';
import { keyDigestBytes } from '../../domain/idempotency.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import { decodeJob, decodeProgress } from './delivery/job.ts';
import { broadcastTables, deviceIdLength, jobKeyBytes } from './tables.ts';

type TableName = (typeof broadcastTables)[number];

const states = ['running', 'paused', 'done', 'cancelled'];

/** Whether a row is as tables.ts states. */
const checks: Readonly<Record<TableName, (key: Buffer, value: Buffer) => boolean>> = {
  jobs: (key, value) => isJobKey(key) && typeof decodeJob(value).request.name === 'string',
  jobProgress: (key, value) => isJobKey(key) && states.includes(decodeProgress(value).state),
  jobTargets: (key, value) => isJobKey(key) && value.length > 0 && value.length % deviceIdLength === 0,
  jobRefusals: (key, value) =>
    isJobKey(key.subarray(0, jobKeyBytes)) && key.length === jobKeyBytes + deviceIdLength && value.length > 0,
  senderKeys: (key, value) =>
    isUuid(key) &&
    key.length === uuidBytesLength + fleetIdLength &&
    value.length === keyDigestBytes + uuidBytesLength,
  jobTimes: (key) => key.length > 0,
};

/** Checks all tables of broadcasts on a stopped server. */
export function verifyBroadcasts(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): void {
  for (const name of broadcastTables) {
    const table = tables.get(name);
    if (table === undefined) findings.add(`broadcasts: table ${name} is missing`);
    const onDamage = (damage: Error): void => findings.add(`broadcasts, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      if (isSound(name, key, value)) continue;
      findings.add(`broadcasts, ${name}: key ${key.toString('hex', 0, 64)} does not decode`);
    }
  }
}

function isJobKey(key: Buffer): boolean {
  const isFleet = fleetIdPattern.test(key.toString('latin1', 0, fleetIdLength));
  return key.length === jobKeyBytes && isFleet && isUuid(key.subarray(fleetIdLength));
}

function isSound(name: TableName, key: Buffer, value: Buffer): boolean {
  try {
    return checks[name](key, value);
  } catch {
    return false;
  }
}
