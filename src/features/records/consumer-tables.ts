import { fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { RecordKind } from '../../domain/records/record.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';

export const consumerTables = ['consumers', 'consumerPositions', 'consumerDone'] as const;

/**
 * The tables of consumers, in the journal of the main thread.
 *
 * consumers: fleet 8, name → ConsumerDeclaration.
 * consumerPositions: consumer 16, shard 2 → position 6, before which every record of that log is done; lost 6.
 * consumerDone: consumer, shard, position 6 → position 6: a range of records that are done too, copied here with the
 * log of a removed shard.
 */
export type ConsumerJournal = Journal<(typeof consumerTables)[number]>;

export const positionBytes = 6;
const shardBytes = 2;
/** Length of a key of consumer and shard. */
export const consumerShardKeyBytes = uuidBytesLength + shardBytes;

/** A consumer without its cursors. */
export interface ConsumerDeclaration {
  id: Buffer;
  createdAtMs: number;
  kinds: readonly RecordKind[];
  schemas: readonly string[];
  leaseSeconds: number | undefined;
}

export function consumerKey(fleetId: string, name: string): Buffer {
  return Buffer.from(fleetId + name, 'latin1');
}

export function readConsumerKey(key: Buffer): { fleetId: string; name: string } {
  const text = key.toString('latin1');
  return { fleetId: text.slice(0, fleetIdLength), name: text.slice(fleetIdLength) };
}

export function encodeConsumer(consumer: ConsumerDeclaration): Buffer {
  return pack(consumer);
}

export function decodeConsumer(bytes: Buffer): ConsumerDeclaration {
  const declaration = unpack(bytes) as ConsumerDeclaration;
  return {
    ...declaration,
    id: Buffer.from(declaration.id),
    leaseSeconds: declaration.leaseSeconds ?? undefined,
  };
}

export function consumerShardKey(id: Buffer, shard: number): Buffer {
  const key = Buffer.concat([id, Buffer.alloc(shardBytes)]);
  key.writeUInt16BE(shard, id.length);
  return key;
}

export function readConsumerShard(key: Buffer): number {
  return key.readUInt16BE(uuidBytesLength);
}

/** Key in `consumerDone`; its value is `positionValue` of the end. */
export function doneKey(id: Buffer, shard: number, from: number): Buffer {
  return Buffer.concat([consumerShardKey(id, shard), positionValue(from)]);
}

export function positionValue(position: number, lost?: number): Buffer {
  const bytes = Buffer.alloc(lost === undefined ? positionBytes : 2 * positionBytes);
  bytes.writeUIntBE(position, 0, positionBytes);
  if (lost !== undefined) bytes.writeUIntBE(lost, positionBytes, positionBytes);
  return bytes;
}

export function readPosition(bytes: Buffer, at = 0): number {
  return bytes.readUIntBE(at, positionBytes);
}

/** Consecutive positions of a log, `to` excluded. */
export interface Range {
  from: number;
  to: number;
}

/** Reads a consumer's cursor in one log from disk. */
export function readStoredCursor(
  tables: ConsumerJournal['tables'],
  id: Buffer,
  shard: number,
): { position: number; lost: number; done: Range[] } {
  const bytes = tables.consumerPositions.getBinary(consumerShardKey(id, shard));
  const done: Range[] = [];
  for (const { key, value } of tables.consumerDone.getRange(rangeOf(consumerShardKey(id, shard)))) {
    done.push({ from: readPosition(key, consumerShardKeyBytes), to: readPosition(value) });
  }
  if (bytes === undefined) return { position: 0, lost: 0, done };
  return { position: readPosition(bytes), lost: readPosition(bytes, positionBytes), done };
}

/** Removes every row whose key begins with `prefix`. Runs inside a write transaction. */
export function removeConsumerRows(table: Table, prefix: Buffer): void {
  for (const key of [...table.getKeys(rangeOf(prefix))]) table.removeSync(key);
}

function rangeOf(prefix: Buffer): { start: Buffer; end: Buffer } {
  return { start: prefix, end: Buffer.concat([prefix, Buffer.alloc(16, 0xff)]) };
}
