import { type DeviceKey, fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { LogFollower } from './log-follower.ts';

/** Filter on the records of a fleet; absent or empty members match all. */
interface RecordFilter {
  kinds?: readonly RecordKind[];
  schemas?: readonly string[];
  devices?: readonly DeviceKey[];
  /** Stored in [fromMs, toMs). */
  fromMs?: number;
  toMs?: number;
}

/** Compiles a filter into a predicate. */
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
 * The cursor of an unnamed reader, as text: for each shard the next position and, after a dash, some bits of the id
 * of the record before it, both in base 36. The bits tell it from a cursor of another log: of a shard that was removed
 * and added again, or from before a restore.
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

/** `id` is that of the record before the position, where known. */
export function entryOf(position: number, id: Buffer | undefined): string {
  return id === undefined ? position.toString(36) : `${position.toString(36)}-${bitsOf(id)}`;
}

/**
 * Resolves a cursor to a position in every log. A log that the cursor does not name, or whose bits do not match, is
 * read from its front: records may repeat, none is skipped.
 */
export async function positionsOf(cursor: string, follower: LogFollower): Promise<number[]> {
  const entries = cursor.split('.');
  return Promise.all(
    follower.shards.map(async (shard, index) => {
      const [text = '0', bits] = (entries[index] ?? '0').split('-');
      const position = Math.min(Number.parseInt(text, 36), positionMax);
      if (position === 0 || position > (await shard.log.end())) return 0;
      if (bits === undefined) return position;
      const [before] = (await shard.log.read(position - 1)).records;
      // Trimmed or damaged: there is nothing to compare with.
      if (before === undefined || before.position >= position) return position;
      return bitsOf(before.id) === bits ? position : 0;
    }),
  );
}

/** A position with its entry in a cursor. */
export interface Start {
  position: number;
  entry: string;
}

export async function startsAt(positions: readonly number[], follower: LogFollower): Promise<Start[]> {
  return Promise.all(
    follower.shards.map(async (shard, index) => {
      const position = positions[index] ?? 0;
      const [before] = position === 0 ? [] : (await shard.log.read(position - 1)).records;
      const id = before?.position === position - 1 ? before.id : undefined;
      return { position, entry: entryOf(position, id) };
    }),
  );
}
