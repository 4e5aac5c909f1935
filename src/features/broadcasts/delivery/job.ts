import { formatUuid } from '../../../core/uuid.ts';
import { pack, unpack } from '../../../storage/lmdb/environment/codec.ts';
import type { BroadcastRefusalCount, BroadcastRequest, BroadcastState, BroadcastStatus } from '../service.ts';
import { deviceIdLength, idOfJob } from '../tables.ts';

/** The request, written once. The ids of a list are stored apart, as only sending reads them. */
export interface Job {
  request: BroadcastStatus['request'];
  payload: Uint8Array;
  to: BroadcastStatus['to'];
  createdAtMs: number;
}

/** Outcome of sending to a chunk of devices. */
export interface Delivered {
  queued: number;
  refused: BroadcastRefusalCount[];
  /** False if it was interrupted: then some devices may have got their mail without being counted. */
  isWhole: boolean;
}

/** Progress of a broadcast, saved after each chunk. */
export interface JobProgress {
  state: BroadcastState;
  /** Last device that is done, by id over all shards; empty at the start. */
  after: string;
  devices: number | undefined;
  queued: number;
  refused: number;
  /** Part of a chunk that was sent before a pause. Resume sends the chunk again, and the shards drop what they had. */
  partial: Delivered | undefined;
  endedAtMs: number | undefined;
}

export function jobOf(
  { payload, to, idempotency: _, ...request }: BroadcastRequest,
  createdAtMs: number,
): Job {
  return {
    request,
    payload,
    to: 'devices' in to ? { listed: to.devices.length } : to,
    createdAtMs,
  };
}

export const initialProgress: JobProgress = {
  state: 'running',
  after: '',
  devices: undefined,
  queued: 0,
  refused: 0,
  partial: undefined,
  endedAtMs: undefined,
};

export function isEnded({ state }: JobProgress): boolean {
  return state === 'done' || state === 'cancelled';
}

export function encodeJob(job: Job): Buffer {
  return pack(job);
}

export function decodeJob(value: Buffer): Job {
  const job = unpack(value) as Job;
  // Copied out of the store's page, since it crosses threads with every batch.
  return { ...job, payload: new Uint8Array(job.payload) };
}

export function encodeProgress(progress: JobProgress): Buffer {
  return pack(progress);
}

export function decodeProgress(value: Buffer): JobProgress {
  const progress = unpack(value) as JobProgress;
  const { devices, partial, endedAtMs } = progress;
  return {
    ...progress,
    devices: devices ?? undefined,
    partial: partial ?? undefined,
    endedAtMs: endedAtMs ?? undefined,
  };
}

/** Sorts and deduplicates the ids. */
export function encodeTargets(devices: readonly string[]): Buffer {
  return Buffer.from([...new Set(devices)].sort().join(''), 'latin1');
}

export function decodeTargets(value: Buffer): string[] {
  const text = value.toString('latin1');
  return Array.from({ length: text.length / deviceIdLength }, (_, index) =>
    text.slice(index * deviceIdLength, (index + 1) * deviceIdLength),
  );
}

export function broadcastStatusOf(
  key: Buffer,
  { payload, ...job }: Job,
  progress: JobProgress,
): BroadcastStatus {
  const { after: _, partial, ...shown } = progress;
  const queued = shown.queued + (partial?.queued ?? 0);
  const refused = shown.refused + (partial?.refused.length ?? 0);
  return { id: formatUuid(idOfJob(key)), ...job, payloadBytes: payload.length, ...shown, queued, refused };
}
