import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { HttpContext } from '../context.ts';
import type { DeviceRequest, Endpoint } from '../endpoint.ts';
import { createStreamReply, type Reply } from '../reply.ts';

/** Whether an Accept header allows an event stream; none at all allows everything (RFC 9110, 12.5.1). */
function allowsEventStream(accept: string): boolean {
  if (accept === '') return true;
  return accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const allowed = type === 'text/event-stream' || type === 'text/*' || type === '*/*';
    return allowed && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** `GET /v1/events` (section 6, D20, D21). */
export const events: Endpoint = {
  method: 'GET',
  path: '/v1/events',
  header: 'accept',
  async handle({ device, given, shard }: DeviceRequest, { streams }: HttpContext): Promise<Reply> {
    if (!allowsEventStream(given.header)) {
      throw new ApiError('bad_request', { msg: 'Accept must allow text/event-stream.' });
    }
    let leave: () => void = () => {};
    const stream = streams.create(device, () => leave());
    try {
      // Subscribed before the mailbox is read: what arrives between is announced twice rather than never.
      leave = await shard.subscribe(device, stream);
      const { size, mail } = await shard.mailboxHead(device);
      stream.greet(size, mail && { mailId: formatUuid(mail.id), name: mail.name });
    } catch (error) {
      stream.close();
      throw error;
    }
    if (stream.isClosed) leave();
    return createStreamReply(stream);
  },
};
