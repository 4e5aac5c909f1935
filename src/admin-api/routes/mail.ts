import { type Static, Type } from 'typebox';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import { emptyPayload, parseMessage } from '../../declarations/schemas/payload.ts';
import type { EnqueueOutcome, Mail } from '../../domain/mail/mail.ts';
import { bytesBody } from '../request/bodies.ts';
import { type AdminApp, type AdminContext, deviceOfRequest, type Handler } from '../request/context.ts';
import {
  devicePath,
  errorAnswers,
  listOf,
  mailboxMailsMax,
  mailTtlSeconds,
  nullable,
  pageLimit,
  requeuesMaxDocument,
  time,
} from '../request/documents.ts';
import { sealCursor } from '../request/list-cursor.ts';
import {
  idempotencyHeaders,
  idempotencyOf,
  type Limits,
  parseDeliverAt,
  refusal,
  replayHeader,
} from '../request/mail-request.ts';

const waitingMail = Type.Object({
  mail_id: Type.String(),
  name: Type.String(),
  payload: Type.Object({}),
  accepted_at: time,
  expires_at: time,
  fetch_count: Type.Integer(),
  first_fetched_at: nullable('string'),
  requeue_count: Type.Integer(),
});
/** Documented as a list, but sent as the bytes of `describePage`. */
const mailPage = Type.Unsafe<Buffer>(listOf(waitingMail));
const sentMail = Type.Object({
  mail_id: Type.String(),
  mailbox_size: Type.Integer(),
  state: Type.Enum(['queued', 'delayed']),
});

function answer(outcome: EnqueueOutcome, limits: Limits): Static<typeof sentMail> {
  if (outcome.result !== 'queued') throw refusal(outcome, limits);
  const { mailId, mailboxSize, isDelayed } = outcome;
  return { mail_id: formatUuid(mailId), mailbox_size: mailboxSize, state: isDelayed ? 'delayed' : 'queued' };
}

/** Formats one mail as JSON with the payload's own bytes (D11): numbers beyond 2^53 would not survive parsing. */
function describeMail(mail: Mail): Buffer {
  const front = JSON.stringify({ mail_id: formatUuid(mail.id), name: mail.name });
  const back = JSON.stringify({
    accepted_at: new Date(mail.acceptedAtMs).toISOString(),
    expires_at: new Date(mail.expiresAtMs).toISOString(),
    fetch_count: mail.fetchCount,
    first_fetched_at:
      mail.firstFetchedAtMs === undefined ? null : new Date(mail.firstFetchedAtMs).toISOString(),
    requeue_count: mail.requeueCount,
  });
  return Buffer.concat([
    Buffer.from(`${front.slice(0, -1)},"payload":`),
    mail.payload,
    Buffer.from(`,${back.slice(1)}`),
  ]);
}

const comma = Buffer.from(',');

function describePage(mails: readonly Mail[], next: string | null): Buffer {
  const items = mails.flatMap((mail, index) =>
    index === 0 ? [describeMail(mail)] : [comma, describeMail(mail)],
  );
  return Buffer.concat([
    Buffer.from('{"items":['),
    ...items,
    Buffer.from(`],"next":${JSON.stringify(next)}}`),
  ]);
}

const sending = {
  summary: 'Send a mail to a device',
  params: Type.Interface([devicePath], { name: Type.String() }),
  headers: idempotencyHeaders,
  querystring: Type.Object({
    ttl_seconds: Type.Optional(Type.Integer(mailTtlSeconds)),
    mailbox_mails_max: Type.Optional(Type.Integer(mailboxMailsMax)),
    requeues_max: Type.Optional(Type.Integer(requeuesMaxDocument)),
    deliver_at: Type.Optional(
      Type.String({ description: 'When the mailbox accepts it: ISO 8601 with a time zone.' }),
    ),
  }),
  body: bytesBody('The payload, a JSON object, delivered byte for byte. An empty body is {}.'),
  response: { 201: sentMail, ...errorAnswers },
};

const sendMail =
  (context: AdminContext): Handler<typeof sending> =>
  async ({ params, query, headers, body, audited }, reply) => {
    const { config, fleets, shards } = context;
    const device = deviceOfRequest(context, params);
    const { fleet_id: fleetId, name } = params;
    if (!schemaNamePattern.test(name)) throw new ApiError('schema_not_found');
    const bytes = body ?? emptyPayload;
    const message = parseMessage(bytes);
    fleets.checkMail(fleetId, name, message ?? {}, bytes.length);
    const fleet = fleets.get(fleetId);
    const limit = query.mailbox_mails_max ?? fleet?.mailboxMailsMax ?? config.mailboxMailsMax;
    const idempotency = idempotencyOf(headers, `mail/${name}`, query, bytes);
    const requeuesMax = query.requeues_max ?? fleet?.mailRequeuesMax;
    const outcome = await shards.of(device).enqueue({
      device,
      name,
      ...(requeuesMax !== undefined && { requeuesMax }),
      ...(query.deliver_at !== undefined && { deliverAtMs: parseDeliverAt(query.deliver_at) }),
      // Copied: a view of Node's pool would cross threads together with the whole pool.
      payload: new Uint8Array(message === undefined ? emptyPayload : bytes),
      ttlSeconds: query.ttl_seconds ?? fleet?.mailTtlSeconds ?? config.mailTtlSeconds,
      mailboxMailsMax: limit,
      ...(idempotency && { idempotency }),
    });
    if (idempotency && outcome.result === 'queued' && outcome.repeated) reply.header(...replayHeader);
    const sent = answer(outcome, {
      mailboxMailsMax: limit,
      delayedMailsMax: config.delayedMailsPerDeviceMax,
    });
    audited.about.mail_id = sent.mail_id;
    reply.code(201);
    return sent;
  };

const listing = {
  summary: 'List the mail in a mailbox',
  description: 'Lists the mails of a mailbox in order, head first, each with its payload.',
  params: devicePath,
  querystring: Type.Object({
    after: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 48 - 2 })),
    limit: pageLimit,
  }),
  response: { 200: mailPage, ...errorAnswers },
};

const listMail =
  (context: AdminContext): Handler<typeof listing> =>
  async (request, reply) => {
    const { shards } = context;
    const {
      params,
      query: { after, limit },
    } = request;
    const device = deviceOfRequest(context, params);
    const shard = shards.of(device);
    if ((await shard.credentials(device)) === undefined) throw new ApiError('device_not_found');
    const { items, next } = await shard.mails(device, after === undefined ? '' : String(after), limit);
    return reply.type('application/json').send(describePage(items, sealCursor(request, next)));
  };

/** Adds `…/devices/{device_id}/mail`: sending a mail, and listing the mailbox. */
export function addMailRoutes(app: AdminApp, context: AdminContext): void {
  app.post(
    '/fleets/:fleet_id/devices/:device_id/mail/:name',
    {
      config: { scope: 'mail', book: 'traffic', bodyLimitKey: 'bodyBytesMax' },
      bodyLimit: context.config.bodyBytesMax,
      schema: sending,
    },
    sendMail(context),
  );
  app.get(
    '/fleets/:fleet_id/devices/:device_id/mail',
    { config: { scope: 'read' }, schema: listing },
    listMail(context),
  );
}
