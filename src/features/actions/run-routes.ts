import { Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import {
  type DeadRunDocument,
  deadRunDocument,
  type LogLineDocument,
  logLineDocument,
  type RunDocument,
  runDocument,
  runOutcome,
  shownDeadRunDocument,
} from '../../contract/action-run.ts';
import {
  deviceId,
  errorAnswers,
  listOf,
  namedPath,
  pageLimit,
  repeatedParameter,
} from '../../contract/document.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import { addDeadLettersOf } from '../dead-letters/routes.ts';
import { sentKind } from './queue/trigger.ts';
import type { ActionDeadLetter, ActionLogLine, Run } from './service.ts';

const runNumber = Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 });
const after = Type.Integer({
  minimum: 1,
  maximum: 2 ** 48 - 2,
  description: '`next` of the previous page.',
});
const page = { after: Type.Optional(after), limit: pageLimit };
/** Devices in one query. */
const devicesMax = 100;
const device = repeatedParameter(deviceId, devicesMax, 'Of any of these devices.');
const text = Type.Optional(
  Type.String({ maxLength: 1_000, description: 'Only those containing this text, ignoring case.' }),
);

function describeRun(run: Run): RunDocument {
  return {
    run: run.number,
    record_id: run.recordId,
    device: run.device,
    name: run.name,
    version: run.version,
    attempt: run.attempt,
    ended_at: timeTextOf(run.endedAtMs),
    cpu_milliseconds: run.cpuMilliseconds,
    wall_milliseconds: run.wallMilliseconds,
    outcome: run.outcome,
    error: run.error ?? null,
    mails: run.mails,
  };
}

function describeLine({ number, run, device, atMs, text }: ActionLogLine): LogLineDocument {
  return { line: number, run, device, at: timeTextOf(atMs), text };
}

function describeLetter({ record, ...letter }: ActionDeadLetter): DeadRunDocument {
  return {
    run: letter.number,
    record_id: formatUuid(record.id),
    kind: sentKind(record),
    device: deviceIdOf(record.device),
    name: record.schema,
    stored_at: timeTextOf(record.storedAtMs),
    ...(record.recordedAtMs !== undefined && { recorded_at: timeTextOf(record.recordedAtMs) }),
    failed_at: timeTextOf(letter.failedAtMs),
    attempts: letter.attempts,
    error: letter.error,
    refused: [...letter.refused],
  };
}

/** Omits absent fields. */
function definedOf<T extends object>(query: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const fields = Object.entries(query).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields) as { [K in keyof T]: Exclude<T[K], undefined> };
}

const listingRuns = {
  summary: 'List attempts at runs of an action',
  description: 'Newest first.',
  params: namedPath,
  querystring: Type.Object({ ...page, device, outcome: Type.Optional(runOutcome), text }),
  response: { 200: listOf(runDocument), ...errorAnswers },
};

const listRuns =
  ({ actions }: AdminContext): Handler<typeof listingRuns> =>
  async ({ params: { fleet_id, name }, query: { device: devices, ...query } }) => {
    const { items, next } = await actions.runs(fleet_id, name, definedOf({ ...query, devices }));
    return { items: items.map(describeRun), next };
  };

const listingLines = {
  summary: 'List log lines of an action',
  description: 'Newest first.',
  params: namedPath,
  querystring: Type.Object({ ...page, run: Type.Optional(runNumber), device, text }),
  response: { 200: listOf(logLineDocument), ...errorAnswers },
};

const listLogLines =
  ({ actions }: AdminContext): Handler<typeof listingLines> =>
  async ({ params: { fleet_id, name }, query: { device: devices, ...query } }) => {
    const { items, next } = await actions.logs(fleet_id, name, definedOf({ ...query, devices }));
    return { items: items.map(describeLine), next };
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
  addDeadLettersOf(app, {
    service: context.actionDeadLetters,
    path: '/fleets/:fleet_id/actions/:name',
    of: 'an action',
    scope: 'admin',
    id: { name: 'run', schema: runNumber, after, limit: pageLimit },
    parse: Number,
    format: String,
    documents: { listed: deadRunDocument, shown: shownDeadRunDocument },
    describe: describeLetter,
    texts: {
      listing: 'Newest first. A single one is shown with its payload.',
      replayingAll: 'Each starts over with all its attempts.',
    },
  });
}
