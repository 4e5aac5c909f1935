import { formatUuid } from '../../../core/uuid.ts';
import { pack, unpack } from '../../../storage/lmdb/environment/codec.ts';
import type { BroadcastRefusalCount, BroadcastRequest, BroadcastState, BroadcastStatus } from '../service.ts';
import { deviceIdLength, idOfJob } from '../tables.ts';

/** What is asked for: written once. The ids of a list are apart, for they are read only to send. */
export interface Job {
  request: BroadcastStatus['request'];
  payload: Uint8Array;
  to: BroadcastStatus['to'];
  createdAtMs: number;
}

/** What became of a chunk of devices. */
export interface Delivered {
  queued: number;
  refused: BroadcastRefusalCount[];
  /** False when it was stopped on the way: then some may have had their mail and are not counted. */
  isWhole: boolean;
}

/** How far a broadcast has come: written behind each chunk. */
export interface JobProgress {
  state: BroadcastState;
  /** The last device that is done with, in the order of ids over all shards; empty at the beginning. */
  after: string;
  devices: number | undefined;
  queued: number;
  refused: number;
  /** What was sent of a chunk that a pause cut short: sent again when it goes on, and known to the shards then. */
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

export const beginning: JobProgress = {
  state: 'running',
  after: '',
  devices: undefined,
  queued: 0,
  refused: 0,
  partial: undefined,
  endedAtMs: undefined,
};

export function isOver({ state }: JobProgress): boolean {
  return state === 'done' || state === 'cancelled';
}

export function encodeJob(job: Job): Buffer {
  return pack(job);
}

export function decodeJob(value: Buffer): Job {
  const job = unpack(value) as Job;
  // Out of the page of the store, and with memory of its own: it crosses threads with every batch.
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

/** In their order, each once. */
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
