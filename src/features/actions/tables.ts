import { parseUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';

export const actionTables = [
  'positions',
  'done',
  'behind',
  'relocated',
  'outbox',
  'state',
  'runs',
  'logs',
  'deadLetters',
] as const;

/**
 * The dispatcher's tables, in an environment of their own. All but the outbox are keyed by the action first, so that
 * they can be removed with it.
 *
 * positions: action 16, shard 2 → position 6: every record of that shard's log before it is done.
 * done: action, shard, position 6: a record past that position that is done too.
 * behind: action, shard, device → position 6: cursor of a device that lags: its records before it are done, and none
 * from there on.
 * relocated: action, record id 16: a record that was not done when a reshard to fewer shards relocated it.
 * outbox: UUIDv7 16 → mails of one run in flight (outbox-entry.ts). state: action, key in UTF-8 → version 16, JSON.
 * runs, logs, deadLetters: action, number 6.
 */
export type ActionJournal = Journal<(typeof actionTables)[number]>;

export const numberBytes = 6;
const shardBytes = 2;
/** Length of a key of an action and a shard. */
export const actionShardKeyBytes = uuidBytesLength + shardBytes;

/** The 16 bytes of an action's id, the prefix of its keys. */
export function actionKey(id: string): Buffer {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new Error('an action has a UUIDv7');
  return bytes;
}

export function actionShardKey(action: Buffer, shard: number): Buffer {
  const key = Buffer.concat([action, Buffer.alloc(shardBytes)]);
  key.writeUInt16BE(shard, action.length);
  return key;
}

/** Key in `relocated`. */
export function relocatedKey(action: Buffer, recordId: Buffer): Buffer {
  return Buffer.concat([action, recordId]);
}

export function readActionShard(key: Buffer): number {
  return key.readUInt16BE(uuidBytesLength);
}

/** Key of a number under an action, or under an action and a shard. */
export function numberKey(front: Buffer, number: number): Buffer {
  return Buffer.concat([front, numberValue(number)]);
}

export function numberValue(number: number): Buffer {
  const bytes = Buffer.alloc(numberBytes);
  bytes.writeUIntBE(number, 0, numberBytes);
  return bytes;
}

/** The number that a key or value ends with. */
export function readNumber(bytes: Buffer): number {
  return bytes.readUIntBE(bytes.length - numberBytes, numberBytes);
}

/** Every key that begins with `front`, in order. */
export function rangeOf(front: Buffer): { start: Buffer; end: Buffer } {
  return { start: front, end: Buffer.concat([front, Buffer.alloc(160, 0xff)]) };
}

/** The greatest number under `front`, or 0. */
export function lastNumber(table: Table, front: Buffer): number {
  const { start, end } = rangeOf(front);
  for (const key of table.getKeys({ start: end, end: start, reverse: true, limit: 1 }))
    return readNumber(key);
  return 0;
}

/** Removes every key that begins with `front`, up to `limit`; returns how many. Call inside a write transaction. */
export function removeActionRows(table: Table, front: Buffer, limit = Number.POSITIVE_INFINITY): number {
  const keys = [...table.getKeys({ ...rangeOf(front), ...(Number.isFinite(limit) && { limit }) })];
  for (const key of keys) table.removeSync(key);
  return keys.length;
}
