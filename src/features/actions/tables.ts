import { type DeviceKey, deviceKeyLength, isDeviceKey } from '../../core/identity.ts';
import { parseUuid } from '../../core/uuid.ts';
import type { TableLayout } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import {
  KeyCodec,
  type KeyField,
  positionField,
  rangeUnder,
  shardField,
  uuidField,
} from '../../storage/tables/key-codec.ts';
import type { Rows } from '../../storage/tables/table-store.ts';
import { cursorTables } from '../records/cursor.ts';

export const actionTables = [
  ...cursorTables,
  'begins',
  'behind',
  'outbox',
  'state',
  'runs',
  'logs',
  'deadLetters',
] as const;

/**
 * The dispatcher's tables, in an environment of their own. All but the outbox are keyed by the action first, so that
 * they can be removed with it. For the cursors see features/records/cursor.ts: the reader is the action.
 *
 * outbox: UUIDv7 16 → mails of one run in flight (outbox-entry.ts). state: action, key in UTF-8 → version 16, JSON.
 * runs, logs, deadLetters: action, number 6.
 */
export type ActionJournal = Journal<(typeof actionTables)[number]>;

const deviceField: KeyField<DeviceKey> = {
  bytes: deviceKeyLength,
  encode: (device) => Buffer.from(device, 'latin1'),
  decode: (bytes) => {
    const device = bytes.toString('latin1');
    if (!isDeviceKey(device)) throw new Error('not a device');
    return device;
  },
};

/**
 * behind: action, shard, device → position: cursor of a device that lags: its records before it are done, and none from
 * there on.
 */
export const behindTable: TableLayout<
  [action: Buffer, shard: number, device: DeviceKey],
  [position: number]
> = {
  name: 'behind',
  key: new KeyCodec(uuidField, shardField, deviceField),
  value: new KeyCodec(positionField),
};

/** begins: action → id of the last begin that its cursors were put at. */
export const beginTable: TableLayout<[action: Buffer], [begin: Buffer]> = {
  name: 'begins',
  key: new KeyCodec(uuidField),
  value: new KeyCodec(uuidField),
};

const numberBytes = 6;

/** The 16 bytes of an action's id, the prefix of its keys. */
export function actionKey(id: string): Buffer {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new Error('an action has a UUIDv7');
  return bytes;
}

/** Key of a number under an action. */
export function numberKey(action: Buffer, number: number): Buffer {
  return Buffer.concat([action, positionField.encode(number)]);
}

/** The number that a key ends with. */
export function readNumber(bytes: Buffer): number {
  return bytes.readUIntBE(bytes.length - numberBytes, numberBytes);
}

/** The greatest number under `front`, or 0. */
export function lastNumber(table: Rows, front: Buffer): number {
  for (const key of table.keys({ ...rangeUnder(front), reverse: true, limit: 1 })) return readNumber(key);
  return 0;
}
