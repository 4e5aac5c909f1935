import type { Handlers } from '../../admin-api/request/routes.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type {
  ForwarderBody,
  ForwarderDocument,
  forwarderRoutes,
  RefusedRecordDocument,
} from '../../contract/forwarder.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { DeadLetterService } from '../dead-letters/dead-letter-service.ts';
import { deadLetterHandlers } from '../dead-letters/routes.ts';
import type { Destination, Forwarder, NatsCredentials } from './declaration/forwarder.ts';
import { invalidForwarder } from './declaration/invalid-forwarder.ts';
import { kindOf } from './destinations/destinations.ts';
import type { ForwarderDeclarations } from './forwarder-declarations.ts';
import type {
  ForwarderDeadLetter,
  ForwarderDraft,
  ForwarderStatus,
  ForwarderWork,
} from './forwarder-work.ts';

interface Parts {
  forwarderDeadLetters: DeadLetterService<ForwarderDeadLetter, Buffer>;
  forwarders: ForwarderDeclarations;
  forwarderWork: ForwarderWork;
  registry: Registry;
}

function forwarderDraftOf(body: ForwarderBody, before: Forwarder | undefined): ForwarderDraft {
  const { headers, credentials, tls, secret } = body;
  return {
    settings: {
      destination: destinationOf(body, before?.destination),
      filter: body.filter ?? before?.filter ?? {},
      enabled: body.enabled ?? before?.enabled ?? true,
      batchRecordsMax: body.batch_records_max ?? before?.batchRecordsMax ?? 100,
      lingerMilliseconds: body.linger_milliseconds ?? before?.lingerMilliseconds ?? 0,
      timeoutSeconds: body.timeout_seconds ?? before?.timeoutSeconds ?? 30,
    },
    secrets: {
      ...(secret !== undefined && { signing: secret }),
      ...(headers !== undefined && { headers: headersOf(headers ?? {}) }),
      ...(credentials !== undefined && { credentials: credentials && credentialsOf(credentials) }),
      ...(tls !== undefined && { tls: tls ?? {} }),
    },
    start: body.start === 'earliest' ? 'earliest' : 'latest',
  };
}

function destinationOf(
  { type, url, servers, subject, delivery }: ForwarderBody,
  before: Destination | undefined,
): Destination {
  return kindOf({ type }).declared(
    { url, servers, subject, delivery },
    before?.type === type ? before : undefined,
  );
}

function headersOf(headers: Record<string, string>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}

function credentialsOf(input: {
  token?: string;
  user?: string;
  password?: string;
  creds?: string;
}): NatsCredentials {
  const { token, user, password, creds } = input;
  const count = Object.keys(input).length;
  if (token !== undefined && count === 1) return { token };
  if (creds !== undefined && count === 1) return { creds };
  if (user !== undefined && password !== undefined && count === 2) return { user, password };
  throw invalidForwarder('Credentials must be a token, a user with a password, or creds.');
}

function describeForwarder(status: ForwarderStatus): ForwarderDocument {
  const { forwarder, counts, lastError, lastDeliveredAtMs, nextAttemptAtMs } = status;
  const { secrets, destination, filter } = forwarder;
  const [signing, oldSigning] = secrets.signing;
  const isOldValid = (oldSigning?.untilMs ?? 0) > Date.now();
  return {
    name: forwarder.name,
    ...destination,
    filter: filter as ForwarderDocument['filter'],
    enabled: forwarder.enabled,
    batch_records_max: forwarder.batchRecordsMax,
    linger_milliseconds: forwarder.lingerMilliseconds,
    timeout_seconds: forwarder.timeoutSeconds,
    headers: secrets.headers.map(([name]) => name),
    credentials: Object.keys(secrets.credentials ?? {})[0] ?? null,
    tls: Object.keys(secrets.tls),
    created_at: timeTextOf(forwarder.createdAtMs),
    secret_since: timeTextOf(signing?.sinceMs),
    old_secret_until: isOldValid ? timeTextOf(oldSigning?.untilMs) : null,
    state: status.state,
    behind: status.behind,
    seconds_behind: status.secondsBehind,
    lost: status.lost,
    dead_letters: status.deadLetters,
    delivered: counts.delivered,
    failed: counts.failed,
    refused: counts.dead,
    dropped: counts.dropped,
    last_delivered_at: timeTextOf(lastDeliveredAtMs),
    last_error:
      lastError === undefined
        ? null
        : {
            at: timeTextOf(lastError.atMs),
            msg: lastError.msg,
            recovered_at: timeTextOf(lastError.recoveredAtMs),
          },
    next_attempt_at: timeTextOf(nextAttemptAtMs),
  };
}

function describeLetter({
  record,
  failedAtMs,
  reason,
  isReplayed,
}: ForwarderDeadLetter): RefusedRecordDocument {
  return {
    record_id: formatUuid(record.id),
    device_id: deviceIdOf(record.device),
    kind: record.kind,
    schema: record.schema,
    stored_at: timeTextOf(record.storedAtMs),
    ...(record.recordedAtMs !== undefined && { recorded_at: timeTextOf(record.recordedAtMs) }),
    ...(record.mailId !== undefined && { mail_id: formatUuid(record.mailId) }),
    failed_at: timeTextOf(failedAtMs),
    reason,
    replayed: isReplayed,
  };
}

/** Handles `/fleets/{fleet_id}/forwarders`, each forwarder by name, and its dead letters. */
export function forwarderHandlers(parts: Parts): Handlers<typeof forwarderRoutes> {
  const { forwarders, forwarderWork, registry } = parts;
  const letters = deadLetterHandlers({
    service: parts.forwarderDeadLetters,
    parameter: 'record_id',
    parse: parseUuid,
    format: formatUuid,
    describe: describeLetter,
  });
  return {
    'GET /fleets/{fleet_id}/forwarders': async ({ params }) => ({
      items: (await forwarderWork.list(params.fleet_id)).map(describeForwarder),
      next: null,
    }),
    'PUT /fleets/{fleet_id}/forwarders/{name}': async ({ params: { fleet_id, name }, body }, reply) => {
      registry.fleet(fleet_id);
      const { status, isNew, secret, warning } = await forwarders.put(fleet_id, name, (known) =>
        forwarderDraftOf(body, known),
      );
      reply.code(isNew ? 201 : 200);
      return { ...describeForwarder(status), secret: secret ?? null, warning: warning ?? null };
    },
    'GET /fleets/{fleet_id}/forwarders/{name}': async ({ params: { fleet_id, name } }) =>
      describeForwarder(await forwarderWork.get(fleet_id, name)),
    'GET /fleets/{fleet_id}/forwarders/{name}/hour': async ({ params: { fleet_id, name } }) => {
      const { fromMs, delivered, failed, refused } = await forwarderWork.hour(fleet_id, name);
      const columns = { delivered: [...delivered], failed: [...failed], refused: [...refused] };
      return { time: timeTextOf(Date.now()), from: timeTextOf(fromMs), ...columns };
    },
    'PATCH /fleets/{fleet_id}/forwarders/{name}': async ({ params, body: { enabled }, audited }) => {
      audited.about = { enabled: String(enabled) };
      return describeForwarder(await forwarders.change(params.fleet_id, params.name, { enabled }));
    },
    'DELETE /fleets/{fleet_id}/forwarders/{name}': async ({ params: { fleet_id, name } }, reply) => {
      await forwarders.delete(fleet_id, name);
      return reply.code(204).send(null);
    },
    'POST /fleets/{fleet_id}/forwarders/{name}/test': async ({ params: { fleet_id, name }, audited }) => {
      const { result, msg, milliseconds } = await forwarderWork.test(fleet_id, name);
      audited.about = { result };
      return { result, msg: msg ?? null, milliseconds };
    },
    'POST /fleets/{fleet_id}/forwarders/{name}/rotate-secret': async ({ params, body }) => {
      const { secret, grace_seconds = 86_400 } = body;
      return { secret: await forwarders.rotateSecret(params.fleet_id, params.name, secret, grace_seconds) };
    },
    'GET /fleets/{fleet_id}/forwarders/{name}/dead-letters': letters.list,
    'GET /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}': letters.show,
    'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}/replay': letters.replay,
    'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters/{record_id}': letters.drop,
    'POST /fleets/{fleet_id}/forwarders/{name}/dead-letters/replay': letters.replayAll,
    'DELETE /fleets/{fleet_id}/forwarders/{name}/dead-letters': letters.dropAll,
  };
}
