import { ApiError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import { asMessage, type JsonObject, parseMessage } from '../../declarations/schemas/payload.ts';
import type { SettleVerb } from '../../domain/mail/mail.ts';
import type { DeviceRequest } from '../server/endpoint.ts';

/** What a settlement answers to a mail (D31). */
interface MailReply {
  /** As it came: it is kept byte for byte (D11). Valid until the first `await`. */
  bytes: Buffer;
  value: JsonObject;
}

/** Parses the body of a settlement. @throws ApiError invalid_json, invalid_body */
export function parseReply(verb: SettleVerb, bytes: Buffer): MailReply | undefined {
  return asReply(verb, parseMessage(bytes), bytes);
}

/**
 * A reply: an object, or none, for which `null` counts too. A requeue ends no mail, so that there would be nothing to keep
 * a reply with.
 * @throws ApiError invalid_body
 */
export function asReply(verb: SettleVerb, sent: unknown, bytes: Buffer): MailReply | undefined {
  const value = asMessage(sent);
  if (value === undefined) return undefined;
  if (verb !== 'requeue') return { bytes, value };
  throw new ApiError('invalid_body', { msg: 'A requeue takes no reply: send it with ack or reject.' });
}

/**
 * Checks a reply against the schema of its mail's name, where there is one, and returns a copy to be stored. The mail is
 * looked up only in a fleet that has such schemas; of one that is not queued the settlement itself tells.
 * @throws ApiError schema_mismatch
 */
export async function checkedReply(
  { device, fleetId, shard }: Pick<DeviceRequest, 'device' | 'fleetId' | 'shard'>,
  fleets: Fleets,
  mailId: Uint8Array,
  { bytes, value }: MailReply,
): Promise<Uint8Array> {
  // A view of Node's pool would cross threads together with the whole pool.
  const copy = new Uint8Array(bytes);
  if (!fleets.checksReplies(fleetId)) return copy;
  const name = await nameOfQueued(shard, device, mailId);
  if (name !== undefined) fleets.replySchema(fleetId, name)?.check(value, copy.length);
  return copy;
}

async function nameOfQueued(
  { mail }: DeviceRequest['shard'],
  device: DeviceKey,
  mailId: Uint8Array,
): Promise<string | undefined> {
  try {
    const receipt = await mail.receipt(device, mailId);
    return receipt?.state === 'queued' ? receipt.name : undefined;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // What is damaged cannot be settled either: it answers for itself, not for what is sent along.
    return undefined;
  }
}
