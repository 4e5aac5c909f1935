import { fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { RecordKind } from '../../domain/records/record.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';

export const consumerTables = ['consumers', 'consumerPositions', 'consumerDone'] as const;

/**
 * What is kept of consumers, in the journal of the main thread.
 *
 * consumers: fleet 8, name → what it is (KeptConsumer).
 * consumerPositions: consumer 16, shard 2 → position 6: every record of that log before it is done; lost 6.
 * consumerDone: consumer, shard, position 6 → position 6: records from the one up to the other are done too; they
 * came with the log of a shard that was given up.
 */
export type ConsumerJournal = Journal<(typeof consumerTables)[number]>;

export const positionBytes = 6;
const shardBytes = 2;
/** Of a key of a consumer and a shard. */
export const consumerShardKeyBytes = uuidBytesLength + shardBytes;

/** What there is of a consumer besides where it is. */
export interface KeptConsumer {
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

export function encodeConsumer(consumer: KeptConsumer): Buffer {
  return pack(consumer);
}

export function decodeConsumer(bytes: Buffer): KeptConsumer {
  const kept = unpack(bytes) as KeptConsumer;
  return { ...kept, id: Buffer.from(kept.id), leaseSeconds: kept.leaseSeconds ?? undefined };
}

export function consumerShardKey(id: Buffer, shard: number): Buffer {
  const key = Buffer.concat([id, Buffer.alloc(shardBytes)]);
  key.writeUInt16BE(shard, id.length);
  return key;
}

export function readConsumerShard(key: Buffer): number {
  return key.readUInt16BE(uuidBytesLength);
}

/** Of `consumerDone`; its value is `positionValue` of the end. */
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

/** Some records of a log, one behind the other: from the first position up to the second. */
export interface Range {
  from: number;
  to: number;
}

/** What is on disk of a consumer in one log. */
export function storedProgress(
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

/** Inside a write transaction: everything whose key begins with these bytes. */
export function removeConsumerRows(table: Table, front: Buffer): void {
  for (const key of [...table.getKeys(rangeOf(front))]) table.removeSync(key);
}

function rangeOf(front: Buffer): { start: Buffer; end: Buffer } {
  return { start: front, end: Buffer.concat([front, Buffer.alloc(16, 0xff)]) };
}
