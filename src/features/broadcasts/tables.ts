import { uuidBytesLength } from '../../core/uuid.ts';
import { keyDigestBytes } from '../../domain/idempotency.ts';
import { fixedBytes } from '../../storage/tables/codec.ts';
import type { TableLayout } from '../../storage/tables/collection.ts';
import { forgottenTimes } from '../../storage/tables/idempotency-keys.ts';
import {
  deviceIdField,
  fleetIdField,
  KeyCodec,
  type KeyTuple,
  uuidField,
} from '../../storage/tables/key-codec.ts';
import type { RefusalReason } from './broadcast-service.ts';
import {
  type Job,
  type JobProgress,
  jobCodec,
  progressCodec,
  refusalCodec,
  targetsCodec,
} from './delivery/job.ts';

/** The id is a UUIDv7, so that the broadcasts of a fleet are in the order they were put. */
export type JobKey = [fleetId: string, id: Buffer];
const jobKey = new KeyCodec<JobKey>(fleetIdField, uuidField);

export const jobTable: TableLayout<JobKey, Job> = { name: 'jobs', key: jobKey, value: jobCodec };

export const jobProgressTable: TableLayout<JobKey, JobProgress> = {
  name: 'jobProgress',
  key: jobKey,
  value: progressCodec,
};

/** The ids of a list, sorted. */
export const targetTable: TableLayout<JobKey, readonly string[]> = {
  name: 'jobTargets',
  key: jobKey,
  value: targetsCodec,
};

export const refusalTable: TableLayout<[...JobKey, deviceId: string], RefusalReason> = {
  name: 'jobRefusals',
  key: new KeyCodec(fleetIdField, uuidField, deviceIdField),
  value: refusalCodec,
};

/** Idempotency key, fleet → digest and id of the broadcast. */
const senderKeyTable: TableLayout<[key: Buffer, fleetId: string], Buffer> = {
  name: 'senderKeys',
  key: new KeyCodec(uuidField, fleetIdField),
  value: fixedBytes(keyDigestBytes + uuidBytesLength),
};

/** In `DATA/control`. */
export const broadcastLayouts: readonly TableLayout<KeyTuple, unknown>[] = [
  jobTable,
  jobProgressTable,
  targetTable,
  refusalTable,
  senderKeyTable,
  forgottenTimes('jobTimes'),
];
