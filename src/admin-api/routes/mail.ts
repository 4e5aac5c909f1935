import type { FastifyReply } from 'fastify';
import type { mailRoutes, SentMailDocument } from '../../contract/mail.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import { emptyPayload, parseMessage } from '../../declarations/schemas/payload.ts';
import type { RefusalLog } from '../../domain/devices/refusals.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import type { DelayedMail, EnqueueOutcome, Mail } from '../../domain/mail/mail.ts';
import type { Shards } from '../../domain/shard.ts';
import { type Bearers, partyOf } from '../auth/authorization.ts';
import type { AdminApiConfig } from '../config.ts';
import { type AdminApp, deviceOfRequest } from '../request/admin-app.ts';
import { sealCursor } from '../request/list-cursor.ts';
import { idempotencyOf, parseDeliverAt, refusal, replayHeader } from '../request/mail-request.ts';
import type { HandlerOf, Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import { describeReceipt } from './receipts.ts';
import { SettlementWaits } from './settlement-waits.ts';

interface Parts extends Bearers {
  config: AdminApiConfig;
  fleets: Fleets;
  refusals: RefusalLog;
  registry: Registry;
  shards: Shards;
  watched: WatchedDevices;
}

/** A queued or a delayed mail: what the other has not is null. */
type WaitingMail = Pick<Mail, 'id' | 'name' | 'payload'> &
  Partial<Omit<Mail, 'requeuesMax'>> &
  Partial<Pick<DelayedMail, 'deliverAtMs'>>;

/** Formats one mail as JSON with the payload's own bytes (D11): numbers beyond 2^53 would not survive parsing. */
function describeMail(mail: WaitingMail): Buffer {
  const front = JSON.stringify({ mail_id: formatUuid(mail.id), name: mail.name });
  const back = JSON.stringify({
    deliver_at: timeTextOf(mail.deliverAtMs),
    accepted_at: timeTextOf(mail.acceptedAtMs),
    expires_at: timeTextOf(mail.expiresAtMs),
    fetch_count: mail.fetchCount ?? 0,
    first_fetched_at: timeTextOf(mail.firstFetchedAtMs),
    requeue_count: mail.requeueCount ?? 0,
  });
  return Buffer.concat([
    Buffer.from(`${front.slice(0, -1)},"payload":`),
    mail.payload,
    Buffer.from(`,${back.slice(1)}`),
  ]);
}

const comma = Buffer.from(',');

function describePage(mails: readonly WaitingMail[], next: string | null): Buffer {
  const items = mails.flatMap((mail, index) =>
    index === 0 ? [describeMail(mail)] : [comma, describeMail(mail)],
  );
  return Buffer.concat([
    Buffer.from('{"items":['),
    ...items,
    Buffer.from(`],"next":${JSON.stringify(next)}}`),
  ]);
}

type Routes = typeof mailRoutes;

/** Refusals that say something of the device, or of its fleet. */
const notedResults: readonly EnqueueOutcome['result'][] = ['mailbox_full', 'delayed_full', 'fleet_mail_full'];

type SendMail = HandlerOf<Routes, 'POST /fleets/{fleet_id}/devices/{device_id}/mail/{name}'>;

/** Sends a mail: all but waiting for it. */
async function enqueue(
  context: Parts,
  { params, query: { wait: _, ...query }, headers, body, audited }: Parameters<SendMail>[0],
  reply: FastifyReply,
): Promise<{ sent: SentMailDocument; mailId: Uint8Array }> {
  const { config, fleets, refusals, shards } = context;
  const device = deviceOfRequest(context, params);
  const { fleet_id: fleetId, name } = params;
  if (!schemaNamePattern.test(name)) throw new ApiError('schema_not_found');
  const bytes = body ?? emptyPayload;
  const message = parseMessage(bytes);
  fleets.checkMail(fleetId, name, message ?? {}, bytes.length);
  const fleet = fleets.get(fleetId);
  const limit = query.mailbox_mails_max ?? fleet?.mailboxMailsMax ?? config.settings.current.mailboxMailsMax;
  const idempotency = idempotencyOf(headers, `mail/${name}`, query, bytes);
  const { replace_key: replaceKey } = query;
  const requeuesMax = query.requeues_max ?? fleet?.mailRequeuesMax;
  const outcome = await shards.of(device).mail.enqueue({
    device,
    name,
    ...(requeuesMax !== undefined && { requeuesMax }),
    ...(replaceKey !== undefined && { replaceKey }),
    ...(query.deliver_at !== undefined && { deliverAtMs: parseDeliverAt(query.deliver_at) }),
    // Copied: a view of Node's pool would cross threads together with the whole pool.
    payload: new Uint8Array(message === undefined ? emptyPayload : bytes),
    ttlSeconds: query.ttl_seconds ?? fleet?.mailTtlSeconds ?? config.settings.current.mailTtlSeconds,
    mailboxMailsMax: limit,
    ...(idempotency && { idempotency }),
  });
  if (idempotency && outcome.result === 'queued' && outcome.repeated) reply.header(...replayHeader);
  const limits = { mailboxMailsMax: limit, delayedMailsMax: config.delayedMailsPerDeviceMax };
  if (outcome.result !== 'queued') {
    const error = refusal(outcome, limits);
    const route = 'POST /fleets/:fleet_id/devices/:device_id/mail/:name';
    if (notedResults.includes(outcome.result))
      refusals.note(device, { route, name, code: error.code, msg: error.message });
    throw error;
  }
  const { mailId, mailboxSize, isDelayed } = outcome;
  const state = isDelayed ? 'delayed' : 'queued';
  const sent: SentMailDocument = { mail_id: formatUuid(mailId), mailbox_size: mailboxSize, state };
  audited.about.mail_id = sent.mail_id;
  return { sent, mailId };
}

const sendMail =
  (context: Parts, waits: SettlementWaits): SendMail =>
  async (request, reply) => {
    const { wait } = request.query;
    const release = wait === undefined ? undefined : waits.take(partyOf(request.raw, context));
    try {
      const { sent, mailId } = await enqueue(context, request, reply);
      if (wait !== undefined) {
        const device = deviceOfRequest(context, request.params);
        const mail = { shard: context.shards.of(device), device, mailId };
        const receipt = await waits.settled(reply, mail, wait);
        if (receipt !== undefined) return reply.type('application/json').send(describeReceipt(receipt));
      }
      reply.code(201);
      return sent;
    } finally {
      release?.();
    }
  };

const positionMax = 2 ** 48 - 2;

/** @throws ApiError bad_request for a cursor that no list has returned. */
function checkCursor(state: 'queued' | 'delayed', after: string): void {
  const isValid =
    state === 'delayed'
      ? /^[0-9a-f]{44}$/.test(after)
      : /^\d{1,15}$/.test(after) && Number(after) <= positionMax;
  if (after !== '' && !isValid)
    throw new ApiError('bad_request', { msg: '`after` is not a `next` of this list.' });
}

const listMail =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices/{device_id}/mail'> =>
  async (request, reply) => {
    const { shards } = context;
    const {
      params,
      query: { state, after, limit },
    } = request;
    checkCursor(state, after);
    const device = deviceOfRequest(context, params);
    const shard = shards.of(device);
    if ((await shard.devices.credentials(device)) === undefined) throw new ApiError('device_not_found');
    context.watched.glance(device);
    const { items, next } = await (state === 'delayed'
      ? shard.mail.listDelayed(device, after, limit)
      : shard.mail.list(device, after, limit));
    return reply.type('application/json').send(describePage(items, sealCursor(request, next)));
  };

/** Handles `…/devices/{device_id}/mail`: sending a mail, and listing the mailbox. */
export function mailHandlers(app: AdminApp, parts: Parts): Handlers<Routes> {
  const waits = new SettlementWaits(app, parts.config.adminWaitsMax);
  return {
    'POST /fleets/{fleet_id}/devices/{device_id}/mail/{name}': sendMail(parts, waits),
    'GET /fleets/{fleet_id}/devices/{device_id}/mail': listMail(parts),
  };
}
