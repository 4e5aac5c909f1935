import { fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';

/**
 * The tables of broadcasts, in `DATA/control`. Keys are fleet and id, a UUIDv7, so that those of a fleet are adjacent
 * and in the order they were put.
 *
 * jobs: the request. jobProgress: its progress. jobTargets: the ids of a list, concatenated. jobRefusals: broadcast,
 * device id → reason. senderKeys: key, fleet → digest and id of the broadcast. jobTimes: up to when keys have expired.
 */
export const broadcastTables = [
  'jobs',
  'jobProgress',
  'jobTargets',
  'jobRefusals',
  'senderKeys',
  'jobTimes',
] as const;
export type BroadcastJournal = Journal<(typeof broadcastTables)[number]>;

export const deviceIdLength = 10;
export const jobKeyBytes = fleetIdLength + uuidBytesLength;

export function jobKey(fleetId: string, id: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(fleetId, 'latin1'), id]);
}

export function fleetIdOfJob(key: Buffer): string {
  return key.toString('latin1', 0, fleetIdLength);
}

/** Copies the id, since it crosses threads. */
export function idOfJob(key: Buffer): Uint8Array {
  return new Uint8Array(key.subarray(fleetIdLength, jobKeyBytes));
}

export function refusalKey(job: Buffer, deviceId: string): Buffer {
  return Buffer.concat([job, Buffer.from(deviceId, 'latin1')]);
}

/** Keys that begin with `prefix`, after `after`. */
export function keysUnder(
  table: Table,
  prefix: Buffer,
  { after = '', limit }: { after?: string; limit: number },
): Buffer[] {
  const start = Buffer.concat([prefix, Buffer.from(after === '' ? '' : `${after}\0`, 'latin1')]);
  const end = Buffer.concat([prefix, Buffer.alloc(deviceIdLength + 1, 0xff)]);
  return [...table.getKeys({ start, end, limit })];
}
