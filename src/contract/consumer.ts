import { type Static, Type } from 'typebox';
import { closedObject, closedPartial, listOf, nullable, pauseBody, time, timeText } from './document.ts';
import { recordDocument, recordKind } from './record.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

const filter = {
  kinds: Type.Array(recordKind, {
    maxItems: recordKind.enum.length,
    description: 'Kinds of records to read; empty for all.',
  }),
  schemas: Type.Array(Type.String({ maxLength: 255 }), {
    maxItems: 1_000,
    description: 'Schemas of records to read; empty for all.',
  }),
};
const enabled = Type.Boolean({ description: 'False: paused, so that no further batch is leased.' });
const consumerBody = closedPartial({
  ...filter,
  lease_seconds: nullable('integer', {
    minimum: 1,
    maximum: 3_600,
    description: 'Lease of a batch; null for 30 seconds.',
  }),
  enabled,
  start: Type.Union(
    [Type.Enum(['earliest', 'latest']), timeText('At the first record stored then or later.')],
    { description: 'Where a new consumer begins. Default: `earliest`. Ignored for an existing one.' },
  ),
});
export type ConsumerBody = Static<typeof consumerBody>;

const consumerDocument = Type.Object({
  name: Type.String(),
  created_at: time,
  ...filter,
  lease_seconds: Type.Integer(),
  enabled,
  behind: Type.Integer({ description: 'Positions of all logs, of all fleets, not done yet.' }),
  seconds_behind: Type.Number({ description: 'Age of the oldest record among them.' }),
  lost: Type.Integer({ description: 'Positions trimmed by retention before the consumer read them.' }),
  shards: Type.Array(
    Type.Object({
      shard: Type.Integer(),
      position: Type.Integer(),
      behind: Type.Integer(),
      seconds_behind: Type.Number(),
      lost: Type.Integer(),
      batch: Type.Union([
        Type.Object({ worker: Type.String(), records: Type.Integer(), expires_at: time }),
        Type.Null(),
      ]),
    }),
    { description: 'Its cursor in the log of each shard, and the leased batch.' },
  ),
});
export type ConsumerDocument = Static<typeof consumerDocument>;

const fetchBody = closedPartial({
  max: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    description: 'Maximum number of records. Default: 100.',
  }),
  wait_seconds: Type.Integer({
    minimum: 0,
    maximum: 60,
    description: 'How long to wait for records. Default: 0.',
  }),
  worker: Type.String({ maxLength: 100, description: 'Name of the worker, shown with the consumer.' }),
});
const batchDocument = Type.Object({
  batch_id: nullable('string', { description: 'Null if there were no records.' }),
  shard: nullable('integer'),
  expires_at: nullable('string', { description: 'End of the lease; then the batch is redelivered.' }),
  records: Type.Array(recordDocument),
  paused: Type.Optional(Type.Boolean({ description: 'True if there are no records because it is paused.' })),
});
const settleBatchBody = closedObject({ batch_id: Type.String({ maxLength: 64 }) });
const settledBatchDocument = Type.Object({
  records: Type.Integer({ description: 'Number of records; 0 if the batch was acknowledged before.' }),
});

/** `/fleets/{fleet_id}/consumers`, each consumer by name, and its batches. */
export const consumerRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/consumers': {
    scope: 'read',
    summary: 'List consumers',
    answers: { 200: listOf(consumerDocument) },
  },
  'PUT /fleets/{fleet_id}/consumers/{name}': {
    scope: 'admin',
    summary: 'Create or change a consumer',
    description: 'Creates a consumer, or changes its filter and lease. Absent settings stay as they are.',
    body: consumerBody,
    answers: { 200: consumerDocument, 201: consumerDocument },
  },
  'GET /fleets/{fleet_id}/consumers/{name}': {
    scope: 'read',
    summary: 'Show a consumer',
    answers: { 200: consumerDocument },
  },
  'PATCH /fleets/{fleet_id}/consumers/{name}': {
    scope: 'admin',
    summary: 'Pause or resume a consumer',
    description:
      'A paused consumer keeps its cursors and leases no further batch: fetches wait as if there were no records. Leased batches can be acknowledged and released.',
    body: pauseBody,
    answers: { 200: consumerDocument },
  },
  'DELETE /fleets/{fleet_id}/consumers/{name}': {
    scope: 'admin',
    summary: 'Delete a consumer',
    answers: { 204: noDocument },
  },
  'POST /fleets/{fleet_id}/consumers/{name}/fetch': {
    scope: 'read',
    summary: 'Fetch a batch of records',
    description:
      'Leases records of one shard until they are acknowledged, released, or the lease ends. In order per device.',
    body: fetchBody,
    answers: { 200: batchDocument },
    hasOwnLimit: true,
  },
  'POST /fleets/{fleet_id}/consumers/{name}/acknowledge': {
    scope: 'read',
    summary: 'Acknowledge a batch',
    description: 'Marks the records of a batch as done; answered once durable.',
    body: settleBatchBody,
    answers: { 200: settledBatchDocument },
  },
  'POST /fleets/{fleet_id}/consumers/{name}/release': {
    scope: 'read',
    summary: 'Release a batch',
    description: 'Makes the records of a batch available again at once.',
    body: settleBatchBody,
    answers: { 200: settledBatchDocument },
  },
});
