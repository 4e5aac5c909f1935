import { Type } from 'typebox';
import { devicePath, errorAnswers } from '../../contract/document.ts';
import { type ReceiptDocument, receiptDocument, withdrawalDocument } from '../../contract/mail.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import type { Receipt } from '../../domain/mail/ended-mail.ts';
import { type AdminApp, type AllShards, deviceOfRequest, type Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
  registry: Registry;
  shards: AllShards;
  watched: WatchedDevices;
}

const mailPath = Type.Interface([devicePath], { mail_id: Type.String() });
/** Sent as it was stored: numbers beyond 2^53 would not survive parsing. */
export const payloadBody = Type.Unsafe<Buffer>({
  type: 'object',
  description: 'Byte for byte as it was sent.',
});

function describe(receipt: Receipt): ReceiptDocument {
  return {
    mail_id: formatUuid(receipt.mailId),
    device_id: deviceIdOf(receipt.device),
    name: receipt.name,
    state: receipt.state,
    deliver_at: timeTextOf(receipt.deliverAtMs),
    queued_at: timeTextOf(receipt.queuedAtMs),
    expires_at: timeTextOf(receipt.expiresAtMs),
    fetch_count: receipt.fetchCount,
    first_fetched_at: timeTextOf(receipt.firstFetchedAtMs),
    requeue_count: receipt.requeueCount,
    settled_at: timeTextOf(receipt.settledAtMs),
  };
}

/** @throws ApiError invalid_mail_id. */
export function mailIdOf(text: string): Buffer {
  const mailId = parseUuid(text);
  if (mailId === undefined) throw new ApiError('invalid_mail_id');
  return mailId;
}

const showing = {
  summary: 'Show the receipt of a mail',
  description:
    'Shows the receipt of a mail, also of a deleted device, until receiptRetentionSeconds after its end. Fetches are written every few seconds; at once, as far as devices call this node, for 15 seconds after a receipt of a queued mail or the mailbox was read, or while a stream of records of this device alone is open, for 256 devices at most.',
  params: mailPath,
  response: { 200: receiptDocument, ...errorAnswers },
};

const showReceipt =
  (context: Needs): Handler<typeof showing> =>
  async ({ params }) => {
    const { shards } = context;
    const device = deviceOfRequest(context, params);
    const receipt = await shards.of(device).mail.receipt(device, mailIdOf(params.mail_id));
    if (receipt === undefined) {
      throw new ApiError('mail_not_found', {
        msg: 'There is no receipt for this mail, or it has expired (receiptRetentionSeconds).',
      });
    }
    if (receipt.state === 'queued') context.watched.glance(device);
    return describe(receipt);
  };

const showingPayload = {
  summary: 'Show the payload of a mail',
  description: 'Answers the payload of a mail as the body: while it is queued or delayed, or a dead letter.',
  params: mailPath,
  response: { 200: payloadBody, ...errorAnswers },
};

const showPayload =
  (context: Needs): Handler<typeof showingPayload> =>
  async ({ params }, reply) => {
    const device = deviceOfRequest(context, params);
    const mailId = mailIdOf(params.mail_id);
    const { mail, deadLetters } = context.shards.of(device);
    // In this order: a mail that dies in between is found.
    const payload = (await mail.payload(device, mailId)) ?? (await deadLetters.get(device, mailId))?.payload;
    if (payload === undefined) {
      throw new ApiError('mail_not_found', {
        msg: 'There is no payload of this mail: it goes with its end, and only dead letters keep theirs.',
      });
    }
    return reply.type('application/json').send(payload);
  };

const withdrawing = {
  summary: 'Withdraw a mail',
  description: 'Withdraws a mail that is queued in its mailbox or delayed.',
  params: mailPath,
  response: { 200: withdrawalDocument, ...errorAnswers },
};

const withdrawMail =
  (context: Needs): Handler<typeof withdrawing> =>
  async ({ params }) => {
    const { shards } = context;
    const device = deviceOfRequest(context, params);
    const mailId = mailIdOf(params.mail_id);
    const shard = shards.of(device);
    const { result, mailboxSize } = await shard.mail.withdraw(device, mailId);
    if (result === 'not_found') throw new ApiError('mail_not_found');
    const receipt = await shard.mail.receipt(device, mailId);
    if (result === 'already_settled') {
      const how = receipt === undefined ? 'settled' : receipt.state.replace('_', '-');
      throw new ApiError('mail_already_settled', { msg: `This mail is already ${how}.` });
    }
    return {
      mail_id: formatUuid(mailId),
      mailbox_size: mailboxSize,
      withdrawn_at: timeTextOf(receipt?.settledAtMs) ?? new Date().toISOString(),
    };
  };

/** Adds `…/devices/{device_id}/mail/{mail_id}`: the receipt of a mail (D17), its payload, and withdrawing it. */
export function addReceiptRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const path = '/fleets/:fleet_id/devices/:device_id/mail/:mail_id';
  route('GET', path, 'read', showing, showReceipt(context));
  route('GET', `${path}/payload`, 'read', showingPayload, showPayload(context));
  route('DELETE', path, 'mail', withdrawing, withdrawMail(context));
}
