import { type DeviceKey, fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { LogReader } from './log-reader.ts';

/** Which records of a fleet are wanted; what is absent or empty is not looked at. */
interface RecordFilter {
  kinds?: readonly RecordKind[];
  schemas?: readonly string[];
  devices?: readonly DeviceKey[];
  /** Stored then or later, and before. */
  fromMs?: number;
  toMs?: number;
}

/** A filter as something to ask of each record. */
export function matcherOf(fleetId: string, filter: RecordFilter): (record: StoredRecord) => boolean {
  const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = filter;
  const kinds = new Set(filter.kinds ?? []);
  const schemas = new Set(filter.schemas ?? []);
  const devices = new Set(filter.devices ?? []);
  return (record) =>
    (devices.size === 0 ? record.device.slice(0, fleetIdLength) === fleetId : devices.has(record.device)) &&
    (kinds.size === 0 || kinds.has(record.kind)) &&
    (schemas.size === 0 || schemas.has(record.schema)) &&
    record.storedAtMs >= fromMs &&
    record.storedAtMs < toMs;
}

/**
 * How far a reader without a name has come in every log, as text: of each shard the position to read on at and,
 * behind a dash, some bits of the id of the record in front of it, both in base 36. By these a cursor is told from
 * one of another log: of a shard that was given up and made anew, or before a restore.
 */
const idBits = 36 ** 3;
const cursorPattern = /^[0-9a-z]{1,10}(-[0-9a-z]{3})?(\.[0-9a-z]{1,10}(-[0-9a-z]{3})?){0,255}$/;
const positionMax = 2 ** 48 - 2;

export function isCursor(text: string): boolean {
  return cursorPattern.test(text);
}

function bitsOf(id: Buffer): string {
  return (id.readUInt32BE(uuidBytesLength - 4) % idBits).toString(36).padStart(3, '0');
}

/** `id`: of the record in front of the position, where that is known. */
export function entryOf(position: number, id: Buffer | undefined): string {
  return id === undefined ? position.toString(36) : `${position.toString(36)}-${bitsOf(id)}`;
}

/**
 * Where to go on in every log. What a cursor does not say of a log, or says of another than is there, begins at its
 * front: records come again then, and none is left out.
 */
export async function positionsOf(cursor: string, reader: LogReader): Promise<number[]> {
  const entries = cursor.split('.');
  return Promise.all(
    reader.shards.map(async (shard, index) => {
      const [text = '0', bits] = (entries[index] ?? '0').split('-');
      const position = Math.min(Number.parseInt(text, 36), positionMax);
      if (position === 0 || position > (await shard.logEnd())) return 0;
      if (bits === undefined) return position;
      const [before] = (await shard.records(position - 1)).records;
      // Trimmed or damaged, it says nothing.
      if (before === undefined || before.position >= position) return position;
      return bitsOf(before.id) === bits ? position : 0;
    }),
  );
}

/** A position with its part of a cursor. */
export interface Start {
  position: number;
  entry: string;
}

export async function startsAt(positions: readonly number[], reader: LogReader): Promise<Start[]> {
  return Promise.all(
    reader.shards.map(async (shard, index) => {
      const position = positions[index] ?? 0;
      const [before] = position === 0 ? [] : (await shard.records(position - 1)).records;
      const id = before?.position === position - 1 ? before.id : undefined;
      return { position, entry: entryOf(position, id) };
    }),
  );
}
