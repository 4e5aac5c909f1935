import { Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import { errorAnswers, fleetPath, listOf, namedPath, pauseBody } from '../../contract/document.ts';
import {
  declaredForwarderDocument,
  type ForwarderBody,
  type ForwarderDocument,
  forwarderBody,
  forwarderDocument,
  forwarderTrialDocument,
  type RefusedRecordDocument,
  refusedRecordDocument,
  secretRotationBody,
  shownRefusedRecordDocument,
  signingSecretDocument,
} from '../../contract/forwarder.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Registry } from '../../declarations/registry.ts';
import { addDeadLettersOf } from '../dead-letters/routes.ts';
import type { DeadLetterService } from '../dead-letters/service.ts';
import type { ForwarderDeclarations } from './control.ts';
import type { Destination, Forwarder, NatsCredentials } from './declaration/forwarder.ts';
import { invalidForwarder } from './declaration/invalid-forwarder.ts';
import { kindOf } from './destinations/destinations.ts';
import type { ForwarderDeadLetter, ForwarderDraft, ForwarderStatus, ForwarderWork } from './service.ts';

interface Needs {
  forwarderDeadLetters: DeadLetterService<ForwarderDeadLetter, Buffer>;
  forwarders: ForwarderDeclarations;
  forwarderWork: ForwarderWork;
  registry: Registry;
}

/** A forwarder makes the server send a fleet's records to any host: the scope for declaring devices is too low. */
const scope = 'admin';

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
  const { forwarder, counts, lastError, lastDeliveredAtMs } = status;
  const { secrets, destination, filter } = forwarder;
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
    state: status.state,
    behind: status.behind,
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
  };
}

const listing = {
  summary: 'List forwarders',
  params: fleetPath,
  response: { 200: listOf(forwarderDocument), ...errorAnswers },
};

const listForwarders =
  ({ forwarderWork }: Needs): Handler<typeof listing> =>
  async ({ params }) => ({
    items: (await forwarderWork.list(params.fleet_id)).map(describeForwarder),
    next: null,
  });

const declaring = {
  summary: 'Create or change a forwarder',
  description: 'Forwards the records of the fleet at least once, in order per device.',
  params: namedPath,
  body: forwarderBody,
  response: { 200: declaredForwarderDocument, 201: declaredForwarderDocument, ...errorAnswers },
};

const declareForwarder =
  ({ forwarders, registry }: Needs): Handler<typeof declaring> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    registry.fleet(fleet_id);
    const { status, isNew, secret, warning } = await forwarders.put(fleet_id, name, (known) =>
      forwarderDraftOf(body, known),
    );
    reply.code(isNew ? 201 : 200);
    return { ...describeForwarder(status), secret: secret ?? null, warning: warning ?? null };
  };

const showing = {
  summary: 'Show a forwarder',
  params: namedPath,
  response: { 200: forwarderDocument, ...errorAnswers },
};

const showForwarder =
  ({ forwarderWork }: Needs): Handler<typeof showing> =>
  async ({ params: { fleet_id, name } }) =>
    describeForwarder(await forwarderWork.get(fleet_id, name));

const testing = {
  summary: 'Test a forwarder',
  description:
    'Sends one test event, a message of schema fleetpost-test and device 0000000000 that is in no log, and answers what came of it. Waits up to timeout_seconds.',
  params: namedPath,
  response: { 200: forwarderTrialDocument, ...errorAnswers },
};

const testForwarder =
  ({ forwarderWork }: Needs): Handler<typeof testing> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const { result, msg, milliseconds } = await forwarderWork.test(fleet_id, name);
    audited.about = { result };
    return { result, msg: msg ?? null, milliseconds };
  };

const changing = {
  summary: 'Pause or resume a forwarder',
  description: 'A paused forwarder keeps its cursors: records stored meanwhile are sent once it is resumed.',
  params: namedPath,
  body: pauseBody,
  response: { 200: forwarderDocument, ...errorAnswers },
};

const changeForwarder =
  ({ forwarders }: Needs): Handler<typeof changing> =>
  async ({ params: { fleet_id, name }, body: { enabled }, audited }) => {
    audited.about = { enabled: String(enabled) };
    return describeForwarder(await forwarders.change(fleet_id, name, { enabled }));
  };

const deletion = {
  summary: 'Delete a forwarder',
  description: 'Deletes its cursors and dead letters too.',
  params: namedPath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteForwarder =
  ({ forwarders }: Needs): Handler<typeof deletion> =>
  async ({ params: { fleet_id, name } }, reply) => {
    await forwarders.delete(fleet_id, name);
    return reply.code(204).send(null);
  };

const rotation = {
  summary: 'Rotate the signing secret of a webhook',
  description: 'Signs batches with the new secret and, for `grace_seconds`, with the previous one too.',
  params: namedPath,
  body: secretRotationBody,
  response: { 200: signingSecretDocument, ...errorAnswers },
};

const rotateSecret =
  ({ forwarders }: Needs): Handler<typeof rotation> =>
  async ({ params: { fleet_id, name }, body: { secret, grace_seconds = 86_400 } }) => ({
    secret: await forwarders.rotateSecret(fleet_id, name, secret, grace_seconds),
  });

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
    failed_at: timeTextOf(failedAtMs),
    reason,
    replayed: isReplayed,
  };
}

/** `/fleets/{fleet_id}/forwarders`, each forwarder by name, and its dead letters. */
export function addForwarderRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/fleets/:fleet_id/forwarders', 'read', listing, listForwarders(context));
  route('PUT', '/fleets/:fleet_id/forwarders/:name', scope, declaring, declareForwarder(context));
  route('GET', '/fleets/:fleet_id/forwarders/:name', 'read', showing, showForwarder(context));
  route('PATCH', '/fleets/:fleet_id/forwarders/:name', scope, changing, changeForwarder(context));
  route('DELETE', '/fleets/:fleet_id/forwarders/:name', scope, deletion, deleteForwarder(context));
  route('POST', '/fleets/:fleet_id/forwarders/:name/test', scope, testing, testForwarder(context), {
    hasOwnLimit: true,
  });
  route('POST', '/fleets/:fleet_id/forwarders/:name/rotate-secret', scope, rotation, rotateSecret(context));
  addDeadLettersOf(app, {
    service: context.forwarderDeadLetters,
    path: '/fleets/:fleet_id/forwarders/:name',
    of: 'a forwarder',
    scope: 'provision',
    id: {
      name: 'record_id',
      schema: Type.String(),
      after: Type.String({ maxLength: 36 }),
      // Each is read with its payload.
      limit: Type.Integer({ minimum: 1, maximum: 100, default: 100 }),
    },
    parse: parseUuid,
    format: formatUuid,
    documents: { listed: refusedRecordDocument, shown: shownRefusedRecordDocument },
    describe: describeLetter,
    texts: {
      listing: 'Oldest record first, without payloads.',
      replayingAll:
        'Sends them again after what was sent since. Each stays until the destination accepts it.',
    },
  });
}
