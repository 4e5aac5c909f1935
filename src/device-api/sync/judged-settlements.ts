import { replyBytesMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { parseUuid } from '../../core/uuid.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import { checkDepth } from '../../declarations/schemas/payload.ts';
import type { SettleVerb } from '../../domain/mail/mail.ts';
import type { SyncSettle } from '../../domain/sync/sync.ts';
import { asReply, checkedReply } from '../endpoints/mail-reply.ts';
import type { DeviceRequest } from '../server/endpoint.ts';
import { invalid, knownMembers, type SyncBody } from './sync-body.ts';

const membersOfSettlement = ['id', 'verb', 'reply'];
const invalidId = new ApiError('invalid_mail_id');
const verbs: readonly unknown[] = ['ack', 'reject', 'requeue'] satisfies SettleVerb[];

/** Judges each settlement by itself, as its own route would: what is to be settled, or why it is refused. */
export async function judgeSettlements(
  { settlements, replyOf }: SyncBody,
  request: DeviceRequest,
  fleets: Fleets,
): Promise<(SyncSettle | ApiError)[]> {
  const judged: (SyncSettle | ApiError)[] = [];
  // One after the other: on a database some of them need a read each.
  for (const [index, item] of settlements.entries()) {
    try {
      judged.push(await judge(item, () => replyOf(index), request, fleets));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      judged.push(error);
    }
  }
  return judged;
}

async function judge(
  item: unknown,
  bytesOfReply: () => Buffer,
  request: DeviceRequest,
  fleets: Fleets,
): Promise<SyncSettle> {
  const { id, verb, reply } = knownMembers(item, 'A settlement', membersOfSettlement);
  if (!isVerb(verb)) throw invalid('verb must be ack, reject or requeue.');
  if (typeof id !== 'string') throw invalid('id must be a string.');
  const mailId = parseUuid(id);
  if (mailId === undefined) throw invalidId;
  const settling: SyncSettle = { mailId, verb };
  if (reply !== undefined) {
    const bytes = bytesOfReply();
    if (bytes.length > replyBytesMax) {
      throw new ApiError('request_too_large', { msg: `The reply is larger than ${replyBytesMax} bytes.` });
    }
    checkDepth(bytes);
    const sent = asReply(verb, reply, bytes);
    if (sent !== undefined) settling.reply = await checkedReply(request, fleets, mailId, sent);
  }
  return settling;
}

export function isVerb(verb: unknown): verb is SettleVerb {
  return verbs.includes(verb);
}
