import { type Static, Type } from 'typebox';
import { testRecordsPerActionMax, testsPerActionMax } from '../core/bounds.ts';
import { runErrorOrNull, trialDocument } from './action-run.ts';
import { closedObject, closedPartial, jsonObject, listOf, nullable, time } from './document.ts';
import { runKind } from './record.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

const language = Type.Enum(['javascript', 'typescript']);
const trigger = closedObject({ kind: runKind, schema: Type.String() });
export type ActionTriggerDocument = Static<typeof trigger>;
const triggers = Type.Array(trigger, {
  description: 'Schemas whose records run the action. The fleet must have them.',
});
const devices = Type.Array(Type.String(), { description: 'Device ids; the record comes from one of these.' });
const tagList = Type.Array(Type.String(), { description: 'Tags; the device has one of these.' });
const payloadSchema = Type.Unsafe<Record<string, unknown>>({
  ...jsonObject,
  description: 'JSON Schema 2020-12 that the payload must match.',
});

const testRecord = closedObject({
  device: Type.String({ description: 'Id of the device taken as the sender.' }),
  kind: Type.Optional(runKind),
  name: Type.Optional(
    Type.String({ description: 'Name of the schema. Like `kind`, defaults to the first trigger.' }),
  ),
  payload: jsonObject,
});
const state = (description: string) =>
  Type.Optional(Type.Unsafe<Record<string, unknown>>({ ...jsonObject, description }));
const actionTest = closedObject(
  {
    record: Type.Optional(testRecord),
    records: Type.Optional(
      Type.Array(testRecord, {
        minItems: 1,
        maxItems: testRecordsPerActionMax,
        description:
          'In place of one record: a sequence, each of which finds the state that those before it left.',
      }),
    ),
    state: state('The state before the first record. Absent: empty.'),
    mails: Type.Optional(
      Type.Array(closedObject({ to: Type.String(), name: Type.String(), payload: jsonObject }), {
        description: 'The mails that all runs together must send, in this order, if present.',
      }),
    ),
    state_after: state('The whole state that the last run must leave, if present.'),
  },
  { description: 'Has either `record` or `records`. All runs must succeed.' },
);
export type ActionTestDocument = Static<typeof actionTest>;
const code = { source: Type.String({ description: 'An ES module.' }), language };

const actionChangeBody = closedPartial({
  enabled: Type.Boolean(),
  runs_per_second_max: nullable('integer', {
    minimum: 1,
    maximum: 1_000_000,
    description: 'Null: the configured default.',
  }),
});
export type ActionChangeBody = Static<typeof actionChangeBody>;

/** Beside the code. Absent fields are taken over from the current version. */
const takenOver = Type.Partial(
  Type.Object({
    on: triggers,
    filter: closedPartial(
      {
        devices: Type.Union([devices, Type.Null()]),
        tags: Type.Union([tagList, Type.Null()]),
        payload: Type.Union([payloadSchema, Type.Null()]),
      },
      { description: 'All conditions must hold. Null removes one.' },
    ),
    tests: Type.Array(actionTest, {
      maxItems: testsPerActionMax,
      description: 'Records that each version is tested with before it is deployed.',
    }),
  }),
).properties;
const draft = closedObject({ ...code, ...takenOver });
export type ActionDraftBody = Static<typeof draft>;
const newVersionBody = closedObject(
  {
    ...code,
    ...takenOver,
    ...actionChangeBody.properties,
    force: Type.Optional(Type.Boolean({ description: 'Deploy even if a test fails or types are wrong.' })),
  },
  { description: 'Absent fields stay as they are; the code is required.' },
);
/** Code to type-check. */
const checkBody = closedObject({
  source: Type.String(),
  on: Type.Optional(triggers),
  name: Type.Optional(Type.String({ maxLength: 255, description: 'The action, deployed or not.' })),
});
/** Type errors, in order; lines and columns count from 1. */
const checkDocument = Type.Object({
  items: Type.Array(
    Type.Object({
      line: Type.Integer(),
      column: Type.Integer(),
      length: Type.Integer({ description: 'Characters of the faulty text.' }),
      msg: Type.String(),
    }),
  ),
});
export type CheckDocument = Static<typeof checkDocument>;

const rollbackBody = closedObject({ version: Type.Integer({ minimum: 1 }) });
const trialBody = closedObject(
  { record: Type.Optional(testRecord), test: Type.Optional(actionTest), draft: Type.Optional(draft) },
  { description: 'Has either a record, for the state as it is, or a test.' },
);

const filter = Type.Partial(Type.Object({ devices, tags: tagList, payload: payloadSchema }));
const actionVersionDocument = Type.Object({
  version: Type.Integer(),
  created_at: time,
  language,
  on: triggers,
  filter,
  tests: Type.Array(actionTest),
  source: Type.String(),
});
export type ActionVersionDocument = Static<typeof actionVersionDocument>;

const actionDocument = Type.Object({
  name: Type.String(),
  enabled: Type.Boolean(),
  version: Type.Integer({ description: 'The current version.' }),
  versions: Type.Array(
    Type.Object({
      version: Type.Integer(),
      created_at: time,
      by: nullable('string', { description: 'Name of the token that deployed it; null: not known.' }),
    }),
    { description: 'Retained versions, oldest first.' },
  ),
  language,
  on: triggers,
  filter,
  runs_per_second_max: Type.Integer(),
  held: Type.Union(
    [
      Type.Literal('dead_letters_full'),
      Type.Literal('filter_disabled'),
      Type.Literal('devices_full'),
      Type.Literal('limited'),
      Type.Literal('disk_full'),
      Type.Literal('server_held'),
      Type.Null(),
    ],
    { description: 'Why an enabled action takes no records of any device now.' },
  ),
  in_hand: Type.Integer({ description: 'Records running, or waiting for a thread or another attempt.' }),
  behind: Type.Integer({ description: 'Records of the logs, of all fleets, not scanned yet.' }),
  seconds_behind: Type.Number({ description: 'Age of the oldest of them.' }),
  lost: Type.Integer({
    description: 'Positions trimmed by retention before the action read them, since it was enabled.',
  }),
  dead_letters: Type.Integer(),
  devices_behind: Type.Integer({
    description:
      'Devices whose records wait while those of others pass: they have used their share of the records in hand or of the dead letters.',
  }),
  devices_blocked: Type.Integer({
    description:
      'Those of them that have used their share of the dead letters: their records wait until some are replayed or dropped.',
  }),
  runs_last_minute: Type.Integer({ description: 'Attempts begun in the last minute, of all versions.' }),
  failures: Type.Integer({
    description: 'Failed attempts of the current version since the last that succeeded, as far as retained.',
  }),
  last_error: runErrorOrNull,
  last_failed_at: nullable('string', { description: 'When an attempt failed with it.' }),
  created_at: time,
});
export type ActionDocument = Static<typeof actionDocument>;

const deployedActionDocument = Type.Object({
  ...actionDocument.properties,
  tests: Type.Array(
    Type.Object({
      test: Type.Integer({ description: 'From 1.' }),
      passed: Type.Boolean(),
      reason: nullable('string', { description: 'Why the test failed.' }),
    }),
  ),
});
export type DeployedActionDocument = Static<typeof deployedActionDocument>;

/** `/fleets/{fleet_id}/actions`: the actions by name, their versions, and trying one. */
export const actionRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/actions': {
    scope: 'read',
    summary: 'List actions',
    answers: { 200: listOf(actionDocument) },
  },
  'POST /fleets/{fleet_id}/actions:check': {
    scope: 'admin',
    summary: 'Type-check the code of an action',
    description:
      'Checks TypeScript against the API of actions and the payload types of the schemas in `on`. Ends after 5 seconds of CPU time or with 256 MB. Fleets take turns, and so do the tokens of a fleet; a newer check of the same `name` takes the place of one that waits, which gets 409 `replaced`.',
    body: checkBody,
    answers: { 200: checkDocument },
    // It changes nothing, and is asked as somebody types.
    book: () => undefined,
    hasOwnLimit: true,
  },
  'PUT /fleets/{fleet_id}/actions/{name}': {
    scope: 'admin',
    summary: 'Deploy a version of an action',
    description: 'Deploys a new version once its tests pass.',
    body: newVersionBody,
    answers: { 200: deployedActionDocument, 201: deployedActionDocument },
    hasOwnLimit: true,
  },
  'GET /fleets/{fleet_id}/actions/{name}': {
    scope: 'read',
    summary: 'Show an action',
    answers: { 200: actionDocument },
  },
  'PATCH /fleets/{fleet_id}/actions/{name}': {
    scope: 'admin',
    summary: 'Enable, disable or pace an action',
    description: 'A disabled action skips records stored meanwhile.',
    body: actionChangeBody,
    answers: { 200: actionDocument },
  },
  'DELETE /fleets/{fleet_id}/actions/{name}': {
    scope: 'admin',
    summary: 'Delete an action',
    answers: { 204: noDocument },
  },
  'GET /fleets/{fleet_id}/actions/{name}/versions/{version}': {
    scope: 'read',
    summary: 'Show a version of an action',
    params: { version: Type.Integer({ minimum: 1 }) },
    answers: { 200: actionVersionDocument },
  },
  'POST /fleets/{fleet_id}/actions/{name}/rollback': {
    scope: 'admin',
    summary: 'Roll an action back to another version',
    description: 'Makes a retained version the current one, under its own number.',
    body: rollbackBody,
    answers: { 200: actionDocument },
  },
  'POST /fleets/{fleet_id}/actions/{name}/test': {
    scope: 'admin',
    summary: 'Try an action on a record or a test',
    description: 'Reports what the runs would do, without sending or writing anything.',
    body: trialBody,
    answers: { 200: trialDocument },
    hasOwnLimit: true,
  },
});
