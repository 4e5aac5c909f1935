import { replyBytesMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { parseUuid } from '../../core/uuid.ts';
import type { Settle, SettleOutcome, SettleVerb } from '../../domain/mail/mail.ts';
import { countRequeues } from '../limits/requeue-bytes.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { type Reply, type ReplyHeaders, settledReply, withMailbox } from '../server/reply.ts';
import { checkedReply, parseReply } from './mail-reply.ts';
import { fetchedReply } from './mailbox-next.ts';

/** D28: the preference of who takes the next mail with the answer (RFC 7240). */
const representation = 'return=representation';
const applied: ReplyHeaders = [['Preference-Applied', representation]];

/** True if a Prefer header asks for the next mail; other preferences are none of ours. */
function prefersNext(prefer: string): boolean {
  if (prefer === '') return false;
  const plain = prefer.toLowerCase().replace(/["\s]/g, '');
  return plain.split(',').some((preference) => preference.split(';', 1)[0] === representation);
}

/** The errors of settlements (D15): a sync shares them among its own. */
export const settleErrors: Readonly<Record<SettleOutcome['result'], ApiError | undefined>> = {
  settled: undefined,
  not_found: new ApiError('mail_not_found'),
  already_settled: new ApiError('mail_already_settled'),
};

/** `PUT /v1/mailbox/ack|reject|requeue/:mail_id` (D14, D15), with a reply (D31). Errors too carry the mailbox size. */
function settle(verb: SettleVerb): Endpoint {
  return {
    method: 'PUT',
    path: `/v1/mailbox/${verb}/:mail_id`,
    takesBody: true,
    bodyBytesMax: replyBytesMax,
    writes: true,
    async handle(request: DeviceRequest, context: HttpContext): Promise<Reply> {
      const { device, input, cached, shard } = request;
      const { activity, fleets } = context;
      const mailId = parseUuid(input.parameter);
      if (mailId === undefined) {
        throw new ApiError('invalid_mail_id', { mailboxSize: await shard.mail.size(device) });
      }
      const settling: Settle = { device, mailId, verb };
      if (input.body.length > 0) {
        const reply = fleets.parse(request.fleetId, input.body, (bytes) => parseReply(verb, bytes));
        if (reply !== undefined) settling.reply = await checkedReply(request, fleets, mailId, reply);
      }
      if (verb === 'requeue') await countRequeues(request, context, [mailId]);
      const fetched = activity.takeFetches(cached, mailId);
      if (fetched !== undefined) settling.fetched = fetched;
      const isNextAsked = prefersNext(input.headers.prefer);
      const settled = isNextAsked ? shard.mail.settleThenHead(settling) : shard.mail.settle(settling);
      const { result, mailboxSize, head } = await settled.catch((error: unknown) => {
        if (fetched !== undefined) activity.restoreFetches(cached, mailId, fetched);
        throw error;
      });
      const refused = settleErrors[result];
      if (refused !== undefined) throw new ApiError(refused.code, { mailboxSize });
      if (head === undefined) return withMailbox(settledReply, mailboxSize);
      const reply = fetchedReply(request, context, head, { headers: applied });
      // What is settled is settled, also where a fetch of the next mail cannot be stored.
      return reply instanceof Promise ? reply.catch(() => withMailbox(settledReply, mailboxSize)) : reply;
    },
  };
}

export const ack = settle('ack');
export const reject = settle('reject');
export const requeue = settle('requeue');
