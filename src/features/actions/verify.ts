import { isDeviceKey } from '../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { RegistryEntries } from '../../declarations/verify.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import { unpack } from '../../storage/lmdb/environment/codec.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import type { Action } from './declaration/action.ts';
import { keyOfAction, keyOfVersion, unpackAction, unpackVersion } from './declaration/action-records.ts';
import { decodeOutboxEntry } from './outbox/outbox-entry.ts';
import { actionShardKeyBytes, actionTables, numberBytes } from './tables.ts';

type TableName = (typeof actionTables)[number];

/** Longest state key, in UTF-8. */
const stateKeyBytesMax = 3 * 128;

/** Checks one row of each table against the layout in tables.ts. */
const checks: Readonly<Record<TableName, (key: Buffer, value: Buffer) => boolean>> = {
  positions: (key, value) => key.length === actionShardKeyBytes && value.length === numberBytes,
  done: (key, value) => key.length === actionShardKeyBytes + numberBytes && value.length === 0,
  behind: (key, value) =>
    isDeviceKey(key.toString('latin1', actionShardKeyBytes)) && value.length === numberBytes,
  relocated: (key, value) =>
    key.length === 2 * uuidBytesLength && isUuid(key.subarray(uuidBytesLength)) && value.length === 0,
  outbox: (key, value) => {
    if (key.length !== uuidBytesLength) return false;
    const { action, record, mails } = decodeOutboxEntry(value);
    return isUuid(action) && isRecord(record) && mails.every(({ device }) => isDeviceKey(device));
  },
  state: (key, value) => {
    if (key.length === uuidBytesLength || key.length > uuidBytesLength + stateKeyBytesMax) return false;
    JSON.parse(value.toString('utf8', uuidBytesLength));
    return isUuid(value);
  },
  runs: (key, value) =>
    isNumbered(key) && typeof (unpack(value) as { outcome: unknown }).outcome === 'string',
  logs: (key, value) => isNumbered(key) && typeof (unpack(value) as { text: unknown }).text === 'string',
  deadLetters: (key, value) =>
    isNumbered(key) && isRecord((unpack(value) as { record: StoredRecord }).record),
};

/** Verifies all tables of the actions journal of a stopped server. Returns the number of dead letters. */
export function verifyActions(
  tables: ReadonlyMap<string, StoredTable>,
  findings: Findings,
  onRecord: () => void,
): { actionDeadLetters: number } {
  let actionDeadLetters = 0;
  for (const name of actionTables) {
    const table = tables.get(name);
    if (table === undefined) findings.add(`actions: there is no table ${name}`);
    const onDamage = (damage: Error): void => findings.add(`actions, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      if (name === 'deadLetters') actionDeadLetters += 1;
      if (isSound(name, key, value)) continue;
      findings.add(`actions, ${name}: key ${key.toString('hex', 0, 64)} does not decode`);
    }
  }
  return { actionDeadLetters };
}

function isSound(name: TableName, key: Buffer, value: Buffer): boolean {
  try {
    return (name === 'outbox' || isUuid(key)) && checks[name](key, value);
  } catch {
    return false;
  }
}

function isNumbered(key: Buffer): boolean {
  return key.length === uuidBytesLength + numberBytes;
}

function isRecord({ device, id, payload }: StoredRecord): boolean {
  return isDeviceKey(device) && isUuid(id) && payload.length > 0;
}

/** Verifies every declared action and its versions; returns the number of actions. */
export function verifyDeclaredActions(
  entries: RegistryEntries,
  fleets: ReadonlySet<string>,
  findings: Findings,
): number {
  /** Versions that must be there, by key, and their actions. */
  const expected = new Map<string, Action>();
  let actions = 0;
  for (const { key, value } of entries('actions')) {
    actions += 1;
    const wrong = checkAction(key, value, fleets, expected);
    if (wrong !== undefined) findings.add(`registry, actions: key ${hex(key)} ${wrong}`);
  }
  for (const { key, value } of entries('actionVersions')) {
    const wrong = !isVersion(key, value)
      ? 'does not decode'
      : expected.delete(hex(key))
        ? undefined
        : 'is of no action that has it';
    if (wrong !== undefined) findings.add(`registry, actionVersions: key ${hex(key)} ${wrong}`);
  }
  for (const [key, { name }] of expected) {
    findings.add(`registry, actionVersions: key ${key} of action ${name} is missing`);
  }
  return actions;
}

function checkAction(
  key: Buffer,
  value: Buffer,
  fleets: ReadonlySet<string>,
  expected: Map<string, Action>,
): string | undefined {
  try {
    const action = unpackAction(value);
    const { id, fleetId, name, version, versions } = action;
    if (!key.equals(keyOfAction(fleetId, name))) return 'is not its own';
    for (const { number } of versions) expected.set(hex(keyOfVersion(id, number)), action);
    if (!versions.some(({ number }) => number === version)) return 'has not the version that runs';
    return fleets.has(fleetId) ? undefined : 'is of a fleet that does not exist';
  } catch {
    return 'does not decode';
  }
}

function isVersion(key: Buffer, value: Buffer): boolean {
  try {
    return key.length === 40 && unpackVersion(value).number === key.readUInt32BE(36);
  } catch {
    return false;
  }
}

/** Bounded: a damaged key can be anything. */
function hex(key: Buffer): string {
  return key.toString('hex', 0, 300);
}
