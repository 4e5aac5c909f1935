import { deviceIdLength } from '../../../core/identity.ts';
import { formatUuid } from '../../../core/uuid.ts';
import { pack, unpack, type ValueCodec } from '../../../storage/tables/codec.ts';
import type {
  BroadcastRefusalCount,
  BroadcastRequest,
  BroadcastState,
  BroadcastStatus,
  ReasonCounts,
  RefusalReason,
} from '../broadcast-service.ts';

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
  /** Refusals by reason, those beyond the list included. */
  reasons: ReasonCounts;
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
  reasons: {},
  partial: undefined,
  endedAtMs: undefined,
};

/** Adds refusals to counts by reason. */
export function withReasons(before: ReasonCounts, refused: readonly BroadcastRefusalCount[]): ReasonCounts {
  const counts = { ...before };
  for (const { reason } of refused) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}

export function isEnded({ state }: JobProgress): boolean {
  return state === 'done' || state === 'cancelled';
}

const states: readonly BroadcastState[] = ['running', 'paused', 'done', 'cancelled'];

export const jobCodec: ValueCodec<Job> = {
  encode: pack,
  decode: (bytes) => {
    const job = unpack(bytes) as Job;
    const isSound = typeof job.request.name === 'string' && ('listed' in job.to || 'filter' in job.to);
    if (!isSound) throw new Error('not a broadcast');
    // Copied out of the store's page, since it crosses threads with every batch.
    return { ...job, payload: new Uint8Array(job.payload) };
  },
};

export const progressCodec: ValueCodec<JobProgress> = {
  encode: pack,
  decode: (bytes) => {
    const progress = unpack(bytes) as JobProgress;
    if (!states.includes(progress.state)) throw new Error('not the progress of a broadcast');
    const { devices, partial, endedAtMs, reasons } = progress;
    return {
      ...progress,
      devices: devices ?? undefined,
      reasons: reasons ?? {},
      partial: partial ?? undefined,
      endedAtMs: endedAtMs ?? undefined,
    };
  },
};

/** The ids one behind the other; sorts and deduplicates them. */
export const targetsCodec: ValueCodec<readonly string[]> = {
  encode: (devices) => Buffer.from([...new Set(devices)].sort().join(''), 'latin1'),
  decode: (bytes) => {
    const text = bytes.toString('latin1');
    if (text === '' || text.length % deviceIdLength > 0) throw new Error('not a list of devices');
    return Array.from({ length: text.length / deviceIdLength }, (_, index) =>
      text.slice(index * deviceIdLength, (index + 1) * deviceIdLength),
    );
  },
};

export const refusalCodec: ValueCodec<RefusalReason> = {
  encode: (reason) => Buffer.from(reason),
  decode: (bytes) => {
    if (bytes.length === 0) throw new Error('not a reason');
    return bytes.toString() as RefusalReason;
  },
};

export function broadcastStatusOf(
  id: Uint8Array,
  { payload, ...job }: Job,
  progress: JobProgress,
): BroadcastStatus {
  const { after: _, partial, ...shown } = progress;
  const queued = shown.queued + (partial?.queued ?? 0);
  const refused = shown.refused + (partial?.refused.length ?? 0);
  const reasons = withReasons(shown.reasons, partial?.refused ?? []);
  return { id: formatUuid(id), ...job, payloadBytes: payload.length, ...shown, queued, refused, reasons };
}
