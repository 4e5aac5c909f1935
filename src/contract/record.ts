import { type Static, Type } from 'typebox';
import { recordedAt, time } from './document.ts';

/** Kinds of records that a device sends and that actions run for. */
export const runKind = Type.Enum(['datapoint', 'message']);
export const recordKind = Type.Enum(['datapoint', 'message', 'receipt']);

/** A record without what its device sent. */
export const recordHeadDocument = Type.Object({
  record_id: Type.String(),
  device_id: Type.String(),
  kind: Type.String(),
  schema: Type.String(),
  stored_at: time,
  recorded_at: Type.Optional(recordedAt),
});
export const recordDocument = Type.Interface([recordHeadDocument], {
  payload: Type.Object({}, { description: 'As it was sent.' }),
});
export type RecordDocument = Static<typeof recordDocument>;

/** A line between records that `max_per_second` has skipped. */
export interface RecordSkippedLine {
  skipped: number;
  cursor: string;
}

/** The newest records, each on a line of its own. */
export const latestRecordsDocument = Type.Object({
  items: Type.Array(recordDocument),
  partial: Type.Boolean({
    description: 'Older records may match: the logs were not read to their beginning.',
  }),
});

/** A line between records on request: how far the reader has come in the logs. */
export interface RecordProgressLine {
  cursor: string;
  passed: number;
  total: number;
}
