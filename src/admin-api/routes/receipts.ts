import type { ReceiptDocument, receiptRoutes } from '../../contract/mail.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import type { Receipt } from '../../domain/mail/ended-mail.ts';
import type { Shards } from '../../domain/shard.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import type { HandlerOf, Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';

interface Parts {
  registry: Registry;
  shards: Shards;
  watched: WatchedDevices;
}

type Routes = typeof receiptRoutes;

/** Formats a receipt as JSON with the reply's own bytes (D11). */
export function describeReceipt(receipt: Receipt): Buffer {
  const document: Omit<ReceiptDocument, 'reply'> = {
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
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(document).slice(0, -1)},"reply":`),
    receipt.reply ?? Buffer.from('null'),
    Buffer.from('}'),
  ]);
}

/** @throws ApiError invalid_mail_id. */
export function mailIdOf(text: string): Buffer {
  const mailId = parseUuid(text);
  if (mailId === undefined) throw new ApiError('invalid_mail_id');
  return mailId;
}

const showReceipt =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}'> =>
  async ({ params }, reply) => {
    const { shards } = context;
    const device = deviceOfRequest(context, params);
    const receipt = await shards.of(device).mail.receipt(device, mailIdOf(params.mail_id));
    if (receipt === undefined) {
      throw new ApiError('mail_not_found', {
        msg: 'There is no receipt for this mail, or it has expired (receiptRetentionSeconds).',
      });
    }
    if (receipt.state === 'queued') context.watched.glance(device);
    return reply.type('application/json').send(describeReceipt(receipt));
  };

const showPayload =
  (context: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}/payload'> =>
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

const withdrawMail =
  (context: Parts): HandlerOf<Routes, 'DELETE /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}'> =>
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

/** Handles `…/devices/{device_id}/mail/{mail_id}`: the receipt of a mail (D17), its payload, and withdrawing it. */
export function receiptHandlers(parts: Parts): Handlers<Routes> {
  return {
    'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}': showReceipt(parts),
    'GET /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}/payload': showPayload(parts),
    'DELETE /fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}': withdrawMail(parts),
  };
}
