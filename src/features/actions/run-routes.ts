import { type Static, Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, listOf, nullable, pageLimit, time } from '../../admin-api/request/documents.ts';
import { actionParameters, isoTime, jsonObject } from './documents.ts';
import { runErrorCodes } from './sandbox/run.ts';
import type { ActionDeadLetter, ActionLogLine, Run, RunTrial } from './service.ts';

const runError = Type.Object({ code: Type.Enum([...runErrorCodes]), msg: Type.String() });
const runErrorOrNull = Type.Union([runError, Type.Null()]);

export const trialDocument = Type.Object({
  error: runErrorOrNull,
  mails: Type.Array(
    Type.Object({
      device: Type.String(),
      name: Type.String(),
      payload: jsonObject,
      ttl_seconds: nullable('integer', { description: "Null: the fleet's default." }),
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

const outcome = Type.Enum(['done', 'failed', 'dead']);
const runDocument = Type.Object({
  run: Type.Integer(),
  record_id: Type.String(),
  device: Type.String(),
  name: Type.String(),
  version: Type.Integer(),
  attempt: Type.Integer(),
  ended_at: time,
  cpu_milliseconds: Type.Number(),
  wall_milliseconds: Type.Number(),
  outcome,
  error: runErrorOrNull,
  mails: Type.Integer({ description: 'Mails queued for delivery.' }),
});
const logDocument = Type.Object({
  line: Type.Integer(),
  run: Type.Integer(),
  device: Type.String(),
  at: time,
  text: Type.String(),
});
const letterDocument = Type.Object({
  run: Type.Integer(),
  record_id: Type.String(),
  kind: Type.Enum(['message', 'datapoint']),
  device: Type.String(),
  name: Type.String(),
  stored_at: time,
  failed_at: time,
  attempts: Type.Integer(),
  error: runError,
  refused: Type.Array(
    Type.Object({
      device: Type.String(),
      name: Type.String(),
      reason: Type.Enum(['mailbox_full', 'device_not_found', 'not_stored']),
    }),
    { description: 'Refused mails. The run itself is done; a replay sends only these.' },
  ),
});
/** Documented by its shape, sent as the text that `letterText` returns. */
const letterWithPayload = Type.Unsafe<string>(
  Type.Interface([letterDocument], {
    payload: Type.Object({}, { description: 'The payload as the device sent it.' }),
  }),
);

const runNumber = Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 });
const after = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2, description: '`next` of the previous page.' }),
);
const page = { after, limit: pageLimit };
const device = Type.Optional(Type.String({ description: 'Only of this device.' }));
const text = Type.Optional(
  Type.String({ maxLength: 1_000, description: 'Only those containing this text, ignoring case.' }),
);
const runPath = Type.Interface([actionParameters], { run: runNumber });
const replayedDocument = Type.Object({ replayed: Type.Integer() });
const droppedDocument = Type.Object({ dropped: Type.Integer() });

export function describeTrial(trial: RunTrial): Static<typeof trialDocument> {
  return {
    error: trial.error ?? null,
    mails: trial.mails.map((mail) => ({
      device: mail.device,
      name: mail.name,
      payload: JSON.parse(mail.payload),
      ttl_seconds: mail.ttlSeconds ?? null,
    })),
    state: trial.state.map(({ key, value }) =>
      value === null ? { key, removed: true } : { key, removed: false, value: JSON.parse(value) },
    ),
    log: [...trial.log],
    cpu_milliseconds: trial.cpuMilliseconds,
    wall_milliseconds: trial.wallMilliseconds,
  };
}

function describeRun(run: Run): Static<typeof runDocument> {
  return {
    run: run.number,
    record_id: run.recordId,
    device: run.device,
    name: run.name,
    version: run.version,
    attempt: run.attempt,
    ended_at: isoTime(run.endedAtMs),
    cpu_milliseconds: run.cpuMilliseconds,
    wall_milliseconds: run.wallMilliseconds,
    outcome: run.outcome,
    error: run.error ?? null,
    mails: run.mails,
  };
}

function describeLine({ number, run, device, atMs, text }: ActionLogLine): Static<typeof logDocument> {
  return { line: number, run, device, at: isoTime(atMs), text };
}

function describeLetter(run: ActionDeadLetter): Static<typeof letterDocument> {
  return {
    run: run.number,
    record_id: run.recordId,
    kind: run.kind,
    device: run.device,
    name: run.name,
    stored_at: isoTime(run.storedAtMs),
    failed_at: isoTime(run.failedAtMs),
    attempts: run.attempts,
    error: run.error,
    refused: run.refused.map(({ device, name, reason }) => ({ device, name, reason })),
  };
}

/** Splices in the payload's own text (D11): numbers beyond 2^53 would not survive parsing. */
function letterText(run: ActionDeadLetter): string {
  return `${JSON.stringify(describeLetter(run)).slice(0, -1)},"payload":${run.payload}}`;
}

/** Omits absent fields. */
function definedOf<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const fields = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as { [K in keyof T]: Exclude<T[K], undefined> };
}

const listingRuns = {
  summary: 'List attempts at runs of an action',
  description: 'Newest first.',
  params: actionParameters,
  querystring: Type.Object({ ...page, device, outcome: Type.Optional(outcome), text }),
  response: { 200: listOf(runDocument), ...errorAnswers },
};

const listRuns =
  ({ actions }: AdminContext): Handler<typeof listingRuns> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.runs(fleet_id, name, definedOf(query));
    return { items: items.map(describeRun), next };
  };

const listingLines = {
  summary: 'List log lines of an action',
  description: 'Newest first.',
  params: actionParameters,
  querystring: Type.Object({ ...page, run: Type.Optional(runNumber), device, text }),
  response: { 200: listOf(logDocument), ...errorAnswers },
};

const listLogLines =
  ({ actions }: AdminContext): Handler<typeof listingLines> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.logs(fleet_id, name, definedOf(query));
    return { items: items.map(describeLine), next };
  };

const listingLetters = {
  summary: 'List dead letters of an action',
  description: 'Newest first. A single one is shown with its payload.',
  params: actionParameters,
  querystring: Type.Object(page),
  response: { 200: listOf(letterDocument), ...errorAnswers },
};

const listLetters =
  ({ actions }: AdminContext): Handler<typeof listingLetters> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.deadLetters(fleet_id, name, definedOf(query));
    return { items: items.map(describeLetter), next };
  };

const showingLetter = {
  summary: 'Show a dead letter of an action with its payload',
  params: runPath,
  response: { 200: letterWithPayload, ...errorAnswers },
};

const showLetter =
  ({ actions }: AdminContext): Handler<typeof showingLetter> =>
  async ({ params: { fleet_id, name, run } }, reply) =>
    reply.type('application/json').send(letterText(await actions.deadLetter(fleet_id, name, run)));

const replayingOne = {
  summary: 'Replay a dead letter of an action',
  params: runPath,
  response: { 200: replayedDocument, ...errorAnswers },
};

const replayOne =
  ({ actions }: AdminContext): Handler<typeof replayingOne> =>
  async ({ params: { fleet_id, name, run }, audited }) => {
    const replayed = await actions.replay(fleet_id, name, run);
    audited.about = { replayed };
    return { replayed };
  };

const replayingAll = {
  summary: 'Replay all dead letters of an action',
  description: 'Each starts over with all its attempts.',
  params: actionParameters,
  response: { 200: replayedDocument, ...errorAnswers },
};

const replayAll =
  ({ actions }: AdminContext): Handler<typeof replayingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const replayed = await actions.replay(fleet_id, name);
    audited.about = { replayed };
    return { replayed };
  };

const droppingOne = {
  summary: 'Drop a dead letter of an action',
  params: runPath,
  response: { 200: droppedDocument, ...errorAnswers },
};

const dropOne =
  ({ actions }: AdminContext): Handler<typeof droppingOne> =>
  async ({ params: { fleet_id, name, run }, audited }) => {
    const dropped = await actions.drop(fleet_id, name, run);
    audited.about = { dropped };
    return { dropped };
  };

const droppingAll = {
  summary: 'Drop all dead letters of an action',
  params: actionParameters,
  response: { 200: droppedDocument, ...errorAnswers },
};

const dropAll =
  ({ actions }: AdminContext): Handler<typeof droppingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const dropped = await actions.drop(fleet_id, name);
    audited.about = { dropped };
    return { dropped };
  };

/** The runs, log lines and dead letters of an action. */
export function addActionRunRoutes(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets/:fleet_id/actions/:name/runs',
    { config: { scope: 'read' }, schema: listingRuns },
    listRuns(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name/logs',
    { config: { scope: 'read' }, schema: listingLines },
    listLogLines(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name/dead-letters',
    { config: { scope: 'read' }, schema: listingLetters },
    listLetters(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name/dead-letters/:run',
    { config: { scope: 'read' }, schema: showingLetter },
    showLetter(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/dead-letters/:run/replay',
    { config: { scope: 'admin' }, schema: replayingOne },
    replayOne(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/dead-letters/replay',
    { config: { scope: 'admin' }, schema: replayingAll },
    replayAll(context),
  );
  app.delete(
    '/fleets/:fleet_id/actions/:name/dead-letters/:run',
    { config: { scope: 'admin' }, schema: droppingOne },
    dropOne(context),
  );
  app.delete(
    '/fleets/:fleet_id/actions/:name/dead-letters',
    { config: { scope: 'admin' }, schema: droppingAll },
    dropAll(context),
  );
}
