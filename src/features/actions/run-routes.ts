import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type {
  actionDeadLetterRoutes,
  actionRunRoutes,
  DeadRunDocument,
  LogLineDocument,
  RunDocument,
  RunMailDocument,
} from '../../contract/action-run.ts';
import { deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Shards } from '../../domain/shard.ts';
import type { DeadLetterService } from '../dead-letters/dead-letter-service.ts';
import { deadLetterHandlers } from '../dead-letters/routes.ts';
import { recordOnOneLine } from '../records/record-line.ts';
import type { RecordService } from '../records/record-service.ts';
import type { ActionDeadLetter, ActionLogLine, ActionWork, Run, RunMail } from './action-work.ts';
import { sentKind } from './declaration/trigger.ts';

interface Parts {
  actionWork: ActionWork;
  records: RecordService;
  shards: Shards;
}

function describeRun(run: Run): RunDocument {
  return {
    run: run.number,
    record_id: run.recordId,
    kind: run.kind,
    device: run.device,
    name: run.name,
    stored_at: timeTextOf(run.storedAtMs),
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
    ...(record.mailId !== undefined && { mail_id: formatUuid(record.mailId) }),
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

/** A mail of a run as its receipt has it now. */
async function describeMail(
  { shards }: Parts,
  fleetId: string,
  { device, name, mailId, refused }: RunMail,
): Promise<RunMailDocument> {
  const mail = { device, name, mail_id: mailId ?? null };
  const id = mailId === undefined ? undefined : parseUuid(mailId);
  if (id === undefined) return { ...mail, state: refused ?? 'sending' };
  const key = deviceKeyOf(fleetId, device);
  return { ...mail, state: (await shards.of(key).mail.receipt(key, id))?.state ?? null };
}

/** The payload of the record keeps its own text (D11). */
const showRun =
  (parts: Parts): HandlerOf<typeof actionRunRoutes, 'GET /fleets/{fleet_id}/actions/{name}/runs/{run}'> =>
  async ({ params: { fleet_id, name, run: number } }, reply) => {
    const run = await parts.actionWork.run(fleet_id, name, number);
    const id = parseUuid(run.recordId);
    const [record, sent] = await Promise.all([
      id && parts.records.find(deviceKeyOf(fleet_id, run.device), id, run.position),
      Promise.all(run.sent.map((mail) => describeMail(parts, fleet_id, mail))),
    ]);
    const front = JSON.stringify({ ...describeRun(run), sent }).slice(0, -1);
    const line = record === undefined ? 'null' : recordOnOneLine(record);
    return reply.type('application/json').send(`${front},"record":${line}}`);
  };

/** Handles the runs and log lines of an action. */
export function actionRunHandlers(parts: Parts): Handlers<typeof actionRunRoutes> {
  const { actionWork } = parts;
  return {
    'GET /fleets/{fleet_id}/actions/{name}/runs': async ({
      params: { fleet_id, name },
      query: { device: devices, ...query },
    }) => {
      const { items, next } = await actionWork.runs(fleet_id, name, definedOf({ ...query, devices }));
      return { items: items.map(describeRun), next };
    },
    'GET /fleets/{fleet_id}/actions/{name}/runs/{run}': showRun(parts),
    'GET /fleets/{fleet_id}/actions/{name}/logs': async ({
      params: { fleet_id, name },
      query: { device: devices, ...query },
    }) => {
      const { items, next } = await actionWork.logs(fleet_id, name, definedOf({ ...query, devices }));
      return { items: items.map(describeLine), next };
    },
  };
}

/** Handles the dead letters of an action. */
export function actionDeadLetterHandlers({
  actionDeadLetters,
}: {
  actionDeadLetters: DeadLetterService<ActionDeadLetter, number>;
}): Handlers<typeof actionDeadLetterRoutes> {
  const letters = deadLetterHandlers({
    service: actionDeadLetters,
    parameter: 'run',
    parse: Number,
    format: String,
    describe: describeLetter,
  });
  return {
    'GET /fleets/{fleet_id}/actions/{name}/dead-letters': letters.list,
    'GET /fleets/{fleet_id}/actions/{name}/dead-letters/{run}': letters.show,
    'POST /fleets/{fleet_id}/actions/{name}/dead-letters/{run}/replay': letters.replay,
    'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters/{run}': letters.drop,
    'POST /fleets/{fleet_id}/actions/{name}/dead-letters/replay': letters.replayAll,
    'DELETE /fleets/{fleet_id}/actions/{name}/dead-letters': letters.dropAll,
  };
}
