import { type Static, Type } from 'typebox';
import { actionStateKeyLengthMax } from '../core/bounds.ts';
import { deadLettersOf } from './dead-letter.ts';
import {
  closedObject,
  deviceId,
  jsonObject,
  listOf,
  nullable,
  pageLimit,
  recordedAt,
  repeatedParameter,
  time,
} from './document.ts';
import { mailStates } from './mail.ts';
import { answeredMailId, recordDocument, runKind } from './record.ts';
import { declareRoutes } from './routes/route.ts';

/** docs/actions/operating.md explains each. */
export const runErrorCode = Type.Enum([
  'invalid_code',
  'unreadable_record',
  'threw',
  'cpu_time_exceeded',
  'wall_time_exceeded',
  'memory_exceeded',
  'stack_exceeded',
  'never_settled',
  'invalid_call',
  'too_many_mails',
  'too_many_reads',
  'invalid_mail',
  'state_full',
  'state_conflict',
  'mail_refused',
  'trial_too_large',
  'thread_lost',
]);
const runError = Type.Object({ code: runErrorCode, msg: Type.String() });
export type RunErrorDocument = Static<typeof runError>;
export const runErrorOrNull = Type.Union([runError, Type.Null()]);

/** The outcome of running an action for a record, or for those of a test, without storing or sending anything. */
export const trialDocument = Type.Object({
  error: runErrorOrNull,
  reason: nullable('string', { description: 'Why the test failed; null if it passed, or there is none.' }),
  records: Type.Integer({ description: 'Records run; the last of them failed if there is an error.' }),
  mails: Type.Array(
    Type.Object({
      record: Type.Integer({ description: 'Which record sends it, from 1.' }),
      device: Type.String(),
      name: Type.String(),
      payload: jsonObject,
      ttl_seconds: nullable('integer', { description: "Null: the fleet's default." }),
      replace_key: nullable('string'),
    }),
    { description: 'Tags are resolved to devices.' },
  ),
  state: Type.Array(
    Type.Object({ key: Type.String(), removed: Type.Boolean(), value: Type.Optional(Type.Unknown()) }),
  ),
  log: Type.Array(Type.String()),
  cpu_milliseconds: Type.Number(),
  wall_milliseconds: Type.Number(),
});
export type TrialDocument = Static<typeof trialDocument>;

const runOutcome = Type.Enum(['done', 'failed', 'dead']);
const runDocument = Type.Object({
  run: Type.Integer(),
  record_id: Type.String(),
  kind: runKind,
  device: Type.String(),
  name: Type.String(),
  stored_at: Type.String({ description: 'When the record was stored. ISO 8601, UTC' }),
  version: Type.Integer(),
  attempt: Type.Integer(),
  ended_at: time,
  cpu_milliseconds: Type.Number(),
  wall_milliseconds: Type.Number(),
  outcome: runOutcome,
  error: runErrorOrNull,
  mails: Type.Integer({ description: 'Mails queued for delivery.' }),
});
export type RunDocument = Static<typeof runDocument>;

/** A mail of a run, with its state now. */
const runMail = Type.Object({
  device: Type.String(),
  name: Type.String(),
  mail_id: nullable('string', { description: 'Null: no mailbox has taken it.' }),
  state: Type.Union(
    [Type.Enum([...mailStates, 'sending', 'fleet_mail_full', 'device_not_found', 'not_stored']), Type.Null()],
    {
      description:
        'As the receipt of the mail has it; null once that has expired. `sending`: on its way to the mailbox.',
    },
  ),
});
export type RunMailDocument = Static<typeof runMail>;
const shownRunDocument = Type.Interface([runDocument], {
  sent: Type.Array(runMail, { description: 'The first 100 mails, in the order in which they were sent.' }),
  record: Type.Union([recordDocument, Type.Null()], {
    description: 'The record that it ran for. Null: no longer in the log.',
  }),
});
export type ShownRunDocument = Static<typeof shownRunDocument>;

const logLineDocument = Type.Object({
  line: Type.Integer(),
  run: Type.Integer(),
  device: Type.String(),
  at: time,
  text: Type.String(),
});
export type LogLineDocument = Static<typeof logLineDocument>;

/** A run that failed for good. */
const deadRunDocument = Type.Object({
  run: Type.Integer({ description: 'Number of its last attempt, as in the list of runs.' }),
  record_id: Type.String(),
  kind: runKind,
  device: Type.String(),
  name: Type.String(),
  stored_at: time,
  recorded_at: Type.Optional(recordedAt),
  mail_id: Type.Optional(answeredMailId),
  failed_at: time,
  attempts: Type.Integer(),
  error: runError,
  refused: Type.Array(
    Type.Object({
      device: Type.String(),
      name: Type.String(),
      reason: Type.Enum(['mailbox_full', 'fleet_mail_full', 'device_not_found', 'not_stored']),
    }),
    { description: 'Refused mails. The run itself is done; a replay sends only these.' },
  ),
});
export type DeadRunDocument = Static<typeof deadRunDocument>;
const shownDeadRunDocument = Type.Interface([deadRunDocument], {
  payload: Type.Object({}, { description: 'The payload as the device sent it.' }),
});

const runNumber = Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 });
/** The cursor of runs, log lines and dead letters. */
const afterNumber = Type.Integer({
  minimum: 1,
  maximum: 2 ** 48 - 2,
  description: '`next` of the previous page.',
});
const page = { after: Type.Optional(afterNumber), limit: pageLimit };
/** Devices in one query. */
const devicesMax = 100;
const device = repeatedParameter(deviceId, devicesMax, 'Of any of these devices.');
const text = Type.Optional(
  Type.String({ maxLength: 1_000, description: 'Only those containing this text, ignoring case.' }),
);

/** The runs and log lines of an action. */
export const actionRunRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/actions/{name}/runs': {
    scope: 'read',
    summary: 'List attempts at runs of an action',
    description: 'Newest first.',
    query: Type.Object({ ...page, device, outcome: Type.Optional(runOutcome), text }),
    answers: { 200: listOf(runDocument) },
  },
  'GET /fleets/{fleet_id}/actions/{name}/runs/{run}': {
    scope: 'read',
    summary: 'Show an attempt at a run with its record and its mails',
    params: { run: runNumber },
    answers: { 200: shownRunDocument },
  },
  'GET /fleets/{fleet_id}/actions/{name}/logs': {
    scope: 'read',
    summary: 'List log lines of an action',
    description: 'Newest first.',
    query: Type.Object({ ...page, run: Type.Optional(runNumber), device, text }),
    answers: { 200: listOf(logLineDocument) },
  },
});

const deadLetters = deadLettersOf({
  of: 'an action',
  scope: 'admin',
  documents: { listed: deadRunDocument, shown: shownDeadRunDocument },
  params: { run: runNumber },
  after: afterNumber,
  limit: pageLimit,
  texts: {
    listing: 'Newest first. A single one is shown with its payload.',
    replayingAll: 'Each starts over with all its attempts.',
  },
});

/** The dead letters of an action. */
export const actionDeadLetterRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/actions/{name}/dead-letters': deadLetters.list,
  'GET /fleets/{fleet_id}/actions/{name}/dead-letters/{run}': deadLetters.show,
  'POST /fleets/{fleet_id}/actions/{name}/dead-letters/{run}/replay': deadLetters.replay,
  'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters/{run}': deadLetters.drop,
  'POST /fleets/{fleet_id}/actions/{name}/dead-letters/replay': deadLetters.replayAll,
  'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters': deadLetters.dropAll,
});

const stateKey = Type.String({ minLength: 1, maxLength: actionStateKeyLengthMax });

/** In the query, as a path may have no key `..`. */
const stateKeyQuery = Type.Object({ key: stateKey });

const stateEntryDocument = Type.Object({
  key: Type.String(),
  value: Type.Unknown({ description: 'Any JSON but null.' }),
});
export type StateEntryDocument = Static<typeof stateEntryDocument>;

const stateValueBody = closedObject({ value: Type.Unknown({ description: 'Any JSON but null.' }) });

const deletedKeysDocument = Type.Object({ deleted: Type.Integer() });

/** `/fleets/{fleet_id}/actions/{name}/state`. */
export const actionStateRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/actions/{name}/state': {
    scope: 'read',
    summary: 'List the state of an action',
    query: Type.Object({ after: Type.Optional(stateKey), limit: pageLimit }),
    answers: { 200: listOf(stateEntryDocument) },
  },
  'DELETE /fleets/{fleet_id}/actions/{name}/state': {
    scope: 'admin',
    summary: 'Delete the whole state of an action',
    answers: { 200: deletedKeysDocument },
  },
  'GET /fleets/{fleet_id}/actions/{name}/state/value': {
    scope: 'read',
    summary: 'Show one key of the state of an action',
    query: stateKeyQuery,
    answers: { 200: stateEntryDocument },
  },
  'PUT /fleets/{fleet_id}/actions/{name}/state/value': {
    scope: 'admin',
    summary: 'Set one key of the state of an action',
    description: 'A run that has read the key before, and has not ended, runs again.',
    query: stateKeyQuery,
    body: stateValueBody,
    answers: { 200: stateEntryDocument },
  },
  'DELETE /fleets/{fleet_id}/actions/{name}/state/value': {
    scope: 'admin',
    summary: 'Delete one key of the state of an action',
    query: stateKeyQuery,
    answers: { 200: deletedKeysDocument },
  },
});
