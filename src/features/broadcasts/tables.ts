import { fleetIdLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { Journal } from '../../storage/lmdb/environment/journal.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';

/**
 * In `DATA/control`. A broadcast is named by its fleet and its id, a UUIDv7, so that those of a fleet lie together
 * in the order they were put.
 *
 * jobs: what is asked for. jobProgress: how far it has come. jobTargets: the ids of a list, one behind the other.
 * jobRefusals: broadcast, device id; why. senderKeys: key, fleet; digest and id of the broadcast. jobTimes: up to
 * when keys were forgotten.
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

/** With memory of its own: it crosses threads. */
export function idOfJob(key: Buffer): Uint8Array {
  return new Uint8Array(key.subarray(fleetIdLength, jobKeyBytes));
}

export function refusalKey(job: Buffer, deviceId: string): Buffer {
  return Buffer.concat([job, Buffer.from(deviceId, 'latin1')]);
}

/** Keys that begin so, behind `after`. */
export function keysUnder(
  table: Table,
  prefix: Buffer,
  { after = '', limit }: { after?: string; limit: number },
): Buffer[] {
  const start = Buffer.concat([prefix, Buffer.from(after === '' ? '' : `${after}\0`, 'latin1')]);
  const end = Buffer.concat([prefix, Buffer.alloc(deviceIdLength + 1, 0xff)]);
  return [...table.getKeys({ start, end, limit })];
}
