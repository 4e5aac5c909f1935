import { isDeviceKey } from '../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../core/uuid.ts';
import { ofNoFleet } from '../../declarations/verify.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import { checkRows, checkTable, type StoppedStore } from '../../storage/tables/check-rows.ts';
import { packed } from '../../storage/tables/codec.ts';
import { KeyCodec, positionField, textField, uuidField } from '../../storage/tables/key-codec.ts';
import { cursorDoneTable, cursorTable } from '../records/cursor.ts';
import type { Action } from './declaration/action.ts';
import { actionTable, versionTable } from './declaration/action-records.ts';
import { actionDeadLetterTable } from './outbox/dead-letters.ts';
import { decodeOutboxEntry } from './outbox/outbox-entry.ts';
import { beginTable, behindTable } from './tables.ts';

/** action, number. */
const numbered = new KeyCodec(uuidField, positionField);

const outboxTable = {
  name: 'outbox',
  key: new KeyCodec(uuidField),
  value: soundIf((value) => {
    const { action, record, mails } = decodeOutboxEntry(value);
    return isUuid(action) && isRecord(record) && mails.every(({ device }) => isDeviceKey(device));
  }),
};

const stateTable = {
  name: 'state',
  // In UTF-8.
  key: new KeyCodec(uuidField, textField(/^.{1,384}$/s)),
  value: soundIf((value) => {
    JSON.parse(value.toString('utf8', uuidBytesLength));
    return isUuid(value);
  }),
};

const runTable = {
  name: 'runs',
  key: numbered,
  value: packed<{ outcome: unknown }>(({ outcome }) => typeof outcome === 'string'),
};

const lineTable = {
  name: 'logs',
  key: numbered,
  value: packed<{ text: unknown }>(({ text }) => typeof text === 'string'),
};

/** Verifies all tables of actions of a stopped server. Returns the number of dead letters. */
export function verifyActions(store: StoppedStore): number {
  checkTable(store, cursorTable);
  checkTable(store, cursorDoneTable);
  checkTable(store, beginTable);
  checkTable(store, behindTable);
  checkTable(store, outboxTable);
  checkTable(store, stateTable);
  checkTable(store, runTable);
  checkTable(store, lineTable);
  return checkTable(store, actionDeadLetterTable);
}

function soundIf(isSound: (value: Buffer) => boolean) {
  return {
    encode: (value: Buffer) => value,
    decode: (value: Buffer) => {
      if (!isSound(value)) throw new Error('not a value of its table');
      return value;
    },
  };
}

function isRecord({ device, id, payload }: StoredRecord): boolean {
  return isDeviceKey(device) && isUuid(id) && payload.length > 0;
}

/** Verifies every declared action and its versions; returns the number of actions. */
export function verifyDeclaredActions(registry: StoppedStore, fleets: ReadonlySet<string>): number {
  /** Versions that must be there, by id and number, and their actions. */
  const expected = new Map<string, Action>();
  let actions = 0;
  for (const { value: action, report } of checkRows(registry, actionTable)) {
    actions += 1;
    const { id, fleetId, version, versions } = action;
    for (const { number } of versions) expected.set(`${id} ${number}`, action);
    if (!versions.some(({ number }) => number === version)) report('has not the version that runs');
    if (!fleets.has(fleetId)) report(ofNoFleet);
  }
  for (const { key, report } of checkRows(registry, versionTable)) {
    if (!expected.delete(key.join(' '))) report('is of no action that has it');
  }
  for (const [version, { name }] of expected) {
    registry.findings.add(`registry, actionVersions: ${version} of action ${name} is missing`);
  }
  return actions;
}
