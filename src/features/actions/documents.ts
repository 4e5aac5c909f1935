import { type Static, Type } from 'typebox';
import { nullable, time } from '../../admin-api/request/documents.ts';
import type { JsonObject } from '../../declarations/schemas/payload.ts';
import type { ActionDraft, ActionFilter, ActionVersion } from './declaration/action.ts';
import { actionTestsMax } from './declaration/action-draft.ts';
import type { ActionStatus } from './service.ts';

/** The documents of actions in the admin API, and their mapping to and from the domain. */
export const actionParameters = Type.Object({ fleet_id: Type.String(), name: Type.String() });

/** Allows any members; an answer omits members that its schema does not describe. */
export const jsonObject = Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true });

const language = Type.Enum(['javascript', 'typescript']);
const trigger = Type.Object(
  { kind: Type.Enum(['message', 'datapoint']), schema: Type.String() },
  { additionalProperties: false },
);
const triggers = Type.Array(trigger, {
  description: 'Schemas whose records run the action. The fleet must have them.',
});
const devices = Type.Array(Type.String(), { description: 'Device ids; the record comes from one of these.' });
const tagList = Type.Array(Type.String(), { description: 'Tags; the device has one of these.' });
const payloadSchema = Type.Unsafe<JsonObject>({
  type: 'object',
  additionalProperties: true,
  description: 'JSON Schema 2020-12 that the payload must match.',
});

const recordMembers = {
  device: Type.String({ description: 'Id of the device taken as the sender.' }),
  kind: Type.Optional(Type.Enum(['message', 'datapoint'])),
  name: Type.Optional(
    Type.String({ description: 'Name of the schema. Like `kind`, defaults to the first trigger.' }),
  ),
  payload: jsonObject,
};
export const testRecord = Type.Object(recordMembers, { additionalProperties: false });
const actionTest = Type.Object(
  {
    record: testRecord,
    mails: Type.Optional(
      Type.Array(
        Type.Object(
          { to: Type.String(), name: Type.String(), payload: jsonObject },
          { additionalProperties: false },
        ),
        { description: 'The mails it must send, in this order. Absent: it must succeed.' },
      ),
    ),
  },
  { additionalProperties: false },
);
const tests = Type.Array(actionTest, {
  maxItems: actionTestsMax,
  description: 'Records that each version is tested with before it is deployed.',
});
const code = { source: Type.String({ description: 'An ES module.' }), language };
const runsPerSecondMax = { minimum: 1, maximum: 1_000_000 };

export const actionChange = Type.Partial(
  Type.Object({
    enabled: Type.Boolean(),
    runs_per_second_max: nullable('integer', {
      ...runsPerSecondMax,
      description: 'Null: the configured default.',
    }),
  }),
  { additionalProperties: false },
);

/** Beside the code. Absent fields are taken over from the current version. */
const takenOver = Type.Partial(
  Type.Object({
    on: triggers,
    filter: Type.Partial(
      Type.Object({
        devices: Type.Union([devices, Type.Null()]),
        tags: Type.Union([tagList, Type.Null()]),
        payload: Type.Union([payloadSchema, Type.Null()]),
      }),
      { additionalProperties: false, description: 'All conditions must hold. Null removes one.' },
    ),
    tests,
  }),
).properties;
export const draftBody = Type.Object({ ...code, ...takenOver }, { additionalProperties: false });
export const newVersion = Type.Object(
  {
    ...code,
    ...takenOver,
    ...actionChange.properties,
    force: Type.Optional(Type.Boolean({ description: 'Deploy even if a test fails.' })),
  },
  { additionalProperties: false, description: 'Absent fields stay as they are; the code is required.' },
);

const filterDocument = Type.Partial(Type.Object({ devices, tags: tagList, payload: payloadSchema }));
export const versionDocument = Type.Object({
  version: Type.Integer(),
  created_at: time,
  language,
  on: triggers,
  filter: filterDocument,
  tests: Type.Array(actionTest),
  source: Type.String(),
});
const statusMembers = {
  name: Type.String(),
  enabled: Type.Boolean(),
  version: Type.Integer({ description: 'The current version.' }),
  versions: Type.Array(Type.Object({ version: Type.Integer(), created_at: time }), {
    description: 'Retained versions, oldest first.',
  }),
  language,
  on: triggers,
  filter: filterDocument,
  runs_per_second_max: Type.Integer(),
  held: Type.Union(
    [
      Type.Literal('dead_letters_full'),
      Type.Literal('devices_full'),
      Type.Literal('limited'),
      Type.Literal('disk_full'),
      Type.Null(),
    ],
    {
      description: 'Why an enabled action takes no records now.',
    },
  ),
  in_hand: Type.Integer({ description: 'Records running, or waiting for a thread or another attempt.' }),
  behind: Type.Integer({ description: 'Positions of the logs not scanned yet.' }),
  dead_letters: Type.Integer(),
  devices_behind: Type.Integer({
    description:
      'Devices whose records wait while those of others pass: they have used their share of the records in hand or of the dead letters.',
  }),
  runs_last_minute: Type.Integer(),
  created_at: time,
};
export const actionDocument = Type.Object(statusMembers);
export const actionPutAnswer = Type.Object({
  ...statusMembers,
  tests: Type.Array(
    Type.Object({
      test: Type.Integer({ description: 'From 1.' }),
      passed: Type.Boolean(),
      reason: nullable('string', { description: 'Why the test failed.' }),
    }),
  ),
});

function mergedFilter(before: ActionFilter, change: Static<typeof draftBody>['filter'] = {}): ActionFilter {
  const kept = Object.entries({ ...before, ...change }).filter(([, value]) => value !== null);
  return Object.fromEntries(kept) as ActionFilter;
}

/** `before`: the current version, if any. */
export function actionDraftOf(
  body: Static<typeof draftBody>,
  before: ActionVersion | undefined,
): ActionDraft {
  return {
    language: body.language as ActionDraft['language'],
    source: body.source,
    on: (body.on as ActionDraft['on'] | undefined) ?? before?.on ?? [],
    filter: mergedFilter(before?.filter ?? {}, body.filter),
    tests: (body.tests as ActionDraft['tests'] | undefined) ?? before?.tests ?? [],
  };
}

/** Includes the effective rate: the action's own or the configured one. */
export function describeAction(
  { action, current, held, inHand, behind, deadLetters, devicesBehind, runsLastMinute }: ActionStatus,
  config: { actionRunsPerSecondMax: number },
): Static<typeof actionDocument> {
  return {
    name: action.name,
    enabled: action.enabled,
    version: action.version,
    versions: action.versions.map((one) => ({ version: one.number, created_at: isoTime(one.createdAtMs) })),
    language: current.language,
    on: [...current.on],
    filter: filterOf(current),
    runs_per_second_max: action.runsPerSecondMax ?? config.actionRunsPerSecondMax,
    held: held ?? null,
    in_hand: inHand,
    behind,
    dead_letters: deadLetters,
    devices_behind: devicesBehind,
    runs_last_minute: runsLastMinute,
    created_at: isoTime(action.createdAtMs),
  };
}

export function describeVersion(version: ActionVersion): Static<typeof versionDocument> {
  return {
    version: version.number,
    created_at: isoTime(version.createdAtMs),
    language: version.language,
    on: [...version.on],
    filter: filterOf(version),
    tests: version.tests as Static<typeof versionDocument>['tests'],
    source: version.source,
  };
}

function filterOf({ filter }: ActionVersion): Static<typeof filterDocument> {
  return filter as Static<typeof filterDocument>;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
