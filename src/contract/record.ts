import { type Static, Type } from 'typebox';
import { pageLimit, recordedAt, repeatedParameter, time, timeText } from './document.ts';
import { declareRoutes } from './routes/route.ts';

/** Kinds of records that a device sends and that actions run for. */
export const runKind = Type.Enum(['datapoint', 'message', 'reply']);
export const recordKind = Type.Enum(['datapoint', 'message', 'receipt', 'reply']);
export const answeredMailId = Type.String({ description: 'Only of a reply: the mail that it answers.' });

/** A record without what its device sent. */
export const recordHeadDocument = Type.Object({
  record_id: Type.String(),
  device_id: Type.String(),
  kind: Type.String(),
  schema: Type.String(),
  stored_at: time,
  recorded_at: Type.Optional(recordedAt),
  mail_id: Type.Optional(answeredMailId),
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
const latestRecordsDocument = Type.Object({
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

/** Schemas or devices in the filter of one request. */
const valuesMax = 100;

const linesAnswer = {
  description:
    'NDJSON: `record_id`, `device_id`, `kind`, `schema`, `stored_at`, `recorded_at` if the device gave one, `mail_id` of a reply, `payload` as it was sent, and `cursor`.',
  content: { 'application/x-ndjson': { schema: Type.String() } },
};
const recordFilter = {
  kind: repeatedParameter(recordKind, recordKind.enum.length, 'Records of these kinds.'),
  schema: repeatedParameter(
    Type.String({ maxLength: 255 }),
    valuesMax,
    'Records of these schemas; for receipts and replies, the name of the mail.',
  ),
  device: repeatedParameter(Type.String(), valuesMax, 'Records of these devices.'),
};
const recordQuery = Type.Object({
  ...recordFilter,
  from: Type.Optional(timeText('Records stored at this time or later.')),
  to: Type.Optional(timeText('Records stored before this time.')),
  after: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description: '`cursor` of the last line seen; `latest` for new records only.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2 ** 48, description: 'Maximum number of records.' }),
  ),
  follow: Type.Boolean({ default: false, description: 'Keep the stream open for new records.' }),
  max_per_second: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'With follow: skip records beyond so many a second, for a reader that only looks on. Once a second, a line has `skipped`, how many since the last, and `cursor`.',
    }),
  ),
  progress: Type.Boolean({
    default: false,
    description:
      'Add a line with `cursor`, `passed` and `total` (positions of the log) each second and at the end.',
  }),
});

/** `/fleets/{fleet_id}/records`. A stream that ends within a chunk is incomplete. */
export const recordRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/records': {
    scope: 'read',
    summary: 'Read or follow the records of a fleet',
    description:
      'Datapoints, messages and other records of a fleet as NDJSON: in order per device, roughly in order of time across devices. Empty lines keep an idle stream open.',
    query: recordQuery,
    answers: { 200: linesAnswer },
  },
  'GET /fleets/{fleet_id}/records:latest': {
    scope: 'read',
    summary: 'List the newest records of a fleet',
    description:
      'Newest first. Reads the logs backwards, of devices that are named their records alone, up to 8 MiB whether they match or not: `partial` says that older ones may match.',
    query: Type.Object({
      ...recordFilter,
      per_schema: Type.Boolean({ default: false, description: 'Only the newest record of each schema.' }),
      limit: pageLimit,
    }),
    answers: { 200: latestRecordsDocument },
  },
});
