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
      ttl_seconds: nullable('integer', { description: "Null: the fleet's." }),
    }),
    { description: 'With tags resolved to devices.' },
  ),
  state: Type.Array(
    Type.Object({ key: Type.String(), removed: Type.Boolean(), value: Type.Optional(Type.Unknown()) }),
  ),
  log: Type.Array(Type.String()),
  cpu_milliseconds: Type.Number(),
  wall_milliseconds: Type.Number(),
});

const outcome = Type.Enum(['done', 'failed', 'parked']);
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
  mails: Type.Integer({ description: 'Put up for delivery.' }),
});
const logDocument = Type.Object({
  line: Type.Integer(),
  run: Type.Integer(),
  device: Type.String(),
  at: time,
  text: Type.String(),
});
const parkedDocument = Type.Object({
  run: Type.Integer(),
  record_id: Type.String(),
  kind: Type.Enum(['message', 'datapoint']),
  device: Type.String(),
  name: Type.String(),
  stored_at: time,
  parked_at: time,
  attempts: Type.Integer(),
  error: runError,
  refused: Type.Array(
    Type.Object({
      device: Type.String(),
      name: Type.String(),
      reason: Type.Enum(['mailbox_full', 'device_not_found', 'not_stored']),
    }),
    { description: 'Mails that were not taken: the run itself was done, and a retry sends these alone.' },
  ),
});
/** Documented by its shape, sent as the text of `parkedText`. */
const parkedWithPayload = Type.Unsafe<string>(
  Type.Interface([parkedDocument], { payload: Type.Object({}, { description: 'As the device sent it.' }) }),
);

const runNumber = Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 });
const after = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2, description: '`next` of the page before.' }),
);
const page = { after, limit: pageLimit };
const device = Type.Optional(Type.String({ description: 'Of this device alone.' }));
const text = Type.Optional(
  Type.String({ maxLength: 1_000, description: 'That have this in them, in upper or lower case.' }),
);
const runPath = Type.Interface([actionParameters], { run: runNumber });
const retriedDocument = Type.Object({ retried: Type.Integer() });
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

function describeParked(run: ActionDeadLetter): Static<typeof parkedDocument> {
  return {
    run: run.number,
    record_id: run.recordId,
    kind: run.kind,
    device: run.device,
    name: run.name,
    stored_at: isoTime(run.storedAtMs),
    parked_at: isoTime(run.parkedAtMs),
    attempts: run.attempts,
    error: run.error,
    refused: run.refused.map(({ device, name, reason }) => ({ device, name, reason })),
  };
}

/** With the payload's own text in it (D11): numbers beyond 2^53 would not survive parsing. */
function parkedText(run: ActionDeadLetter): string {
  return `${JSON.stringify(describeParked(run)).slice(0, -1)},"payload":${run.payload}}`;
}

/** An absent field is left out. */
function given<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const fields = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as { [K in keyof T]: Exclude<T[K], undefined> };
}

const listingRuns = {
  summary: 'List attempts at runs of an action',
  description: 'Attempts at runs, newest first.',
  params: actionParameters,
  querystring: Type.Object({ ...page, device, outcome: Type.Optional(outcome), text }),
  response: { 200: listOf(runDocument), ...errorAnswers },
};

const listRuns =
  ({ actions }: AdminContext): Handler<typeof listingRuns> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.runs(fleet_id, name, given(query));
    return { items: items.map(describeRun), next };
  };

const listingLines = {
  summary: 'List log lines of an action',
  description: 'Lines of its log, newest first.',
  params: actionParameters,
  querystring: Type.Object({ ...page, run: Type.Optional(runNumber), device, text }),
  response: { 200: listOf(logDocument), ...errorAnswers },
};

const listLogLines =
  ({ actions }: AdminContext): Handler<typeof listingLines> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.logs(fleet_id, name, given(query));
    return { items: items.map(describeLine), next };
  };

const listingParked = {
  summary: 'List parked runs of an action',
  description: 'Runs that were given up, newest first; one by itself has its payload.',
  params: actionParameters,
  querystring: Type.Object(page),
  response: { 200: listOf(parkedDocument), ...errorAnswers },
};

const listParked =
  ({ actions }: AdminContext): Handler<typeof listingParked> =>
  async ({ params: { fleet_id, name }, query }) => {
    const { items, next } = await actions.parked(fleet_id, name, given(query));
    return { items: items.map(describeParked), next };
  };

const showingParked = {
  summary: 'Show a parked run with its payload',
  params: runPath,
  response: { 200: parkedWithPayload, ...errorAnswers },
};

const showParked =
  ({ actions }: AdminContext): Handler<typeof showingParked> =>
  async ({ params: { fleet_id, name, run } }, reply) =>
    reply.type('application/json').send(parkedText(await actions.parkedRun(fleet_id, name, run)));

const retryingOne = {
  summary: 'Retry a parked run',
  params: runPath,
  response: { 200: retriedDocument, ...errorAnswers },
};

const retryOne =
  ({ actions }: AdminContext): Handler<typeof retryingOne> =>
  async ({ params: { fleet_id, name, run }, audited }) => {
    const retried = await actions.retry(fleet_id, name, run);
    audited.about = { retried };
    return { retried };
  };

const retryingAll = {
  summary: 'Retry all parked runs of an action',
  description: 'Of all of them; each starts over with all its attempts.',
  params: actionParameters,
  response: { 200: retriedDocument, ...errorAnswers },
};

const retryAll =
  ({ actions }: AdminContext): Handler<typeof retryingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const retried = await actions.retry(fleet_id, name);
    audited.about = { retried };
    return { retried };
  };

const droppingOne = {
  summary: 'Drop a parked run',
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
  summary: 'Drop all parked runs of an action',
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

/** What an action did, and its runs that were given up. */
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
    '/fleets/:fleet_id/actions/:name/parked',
    { config: { scope: 'read' }, schema: listingParked },
    listParked(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name/parked/:run',
    { config: { scope: 'read' }, schema: showingParked },
    showParked(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/parked/:run/retry',
    { config: { scope: 'admin' }, schema: retryingOne },
    retryOne(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/parked/retry',
    { config: { scope: 'admin' }, schema: retryingAll },
    retryAll(context),
  );
  app.delete(
    '/fleets/:fleet_id/actions/:name/parked/:run',
    { config: { scope: 'admin' }, schema: droppingOne },
    dropOne(context),
  );
  app.delete(
    '/fleets/:fleet_id/actions/:name/parked',
    { config: { scope: 'admin' }, schema: droppingAll },
    dropAll(context),
  );
}
