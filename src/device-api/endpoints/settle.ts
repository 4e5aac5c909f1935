import { ApiError } from '../../core/errors.ts';
import { parseUuid } from '../../core/uuid.ts';
import type { SettleVerb } from '../../domain/mail/mail.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { type Reply, settled } from '../server/reply.ts';

/** `PUT /v1/mailbox/ack|reject|requeue/:mail_id` (D14, D15). Every answer carries the mailbox size. */
function settle(verb: SettleVerb): Endpoint {
  return {
    method: 'PUT',
    path: `/v1/mailbox/${verb}/:mail_id`,
    writes: true,
    async handle({ device, input, cached, shard }: DeviceRequest, { activity }: HttpContext): Promise<Reply> {
      const mailId = parseUuid(input.parameter);
      if (mailId === undefined) {
        throw new ApiError('invalid_mail_id', { mailboxSize: await shard.mail.size(device) });
      }
      const fetched = activity.takeFetches(cached, mailId);
      const settling = fetched === undefined ? { device, mailId, verb } : { device, mailId, verb, fetched };
      const { result, mailboxSize } = await shard.mail.settle(settling).catch((error: unknown) => {
        if (fetched !== undefined) activity.restoreFetches(cached, mailId, fetched);
        throw error;
      });
      if (result === 'not_found') throw new ApiError('mail_not_found', { mailboxSize });
      if (result === 'already_settled') throw new ApiError('mail_already_settled', { mailboxSize });
      return settled(mailboxSize);
    },
  };
}

export const ack = settle('ack');
export const reject = settle('reject');
export const requeue = settle('requeue');
