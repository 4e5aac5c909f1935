import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import { checkSecret, secretDigest } from '../auth/authentication.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { createStreamReply, type Reply } from '../server/reply.ts';

/** Media ranges that match an event stream; the most specific, which decides, first. */
const ranges = ['text/event-stream', 'text/*', '*/*'];

/** True if an Accept header allows an event stream; an absent one allows everything (RFC 9110, 12.5.1). */
function allowsEventStream(accept: string): boolean {
  if (accept === '') return true;
  const refusedByRange = new Map<string, boolean>();
  for (const part of accept.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    refusedByRange.set(
      range,
      parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)),
    );
  }
  const deciding = ranges.find((range) => refusedByRange.has(range));
  return deciding !== undefined && refusedByRange.get(deciding) === false;
}

/** Checks a device again that listens for long: it may be disabled or re-keyed. For that the digest is kept, not the secret. */
export function secretCheckOf({ device, input, shard }: DeviceRequest): () => Promise<void> {
  const digest = secretDigest(input.headers.secret);
  return async () => {
    checkSecret(digest, await shard.devices.credentials(device));
  };
}

/** `GET /v1/events` (section 6, D20, D21). */
export const events: Endpoint = {
  method: 'GET',
  path: '/v1/events',
  async handle(request: DeviceRequest, { streams }: HttpContext): Promise<Reply> {
    const { cached, device, input, shard } = request;
    if (!allowsEventStream(input.headers.accept)) {
      throw new ApiError('bad_request', { msg: 'Accept must allow text/event-stream.' });
    }
    let leave: () => void = () => {};
    const check = secretCheckOf(request);
    const stream = streams.create(device, () => leave(), check);
    try {
      // Subscribes before reading the mailbox: mail that arrives in between is announced twice rather than never.
      leave = await shard.streams.subscribe(device, stream);
      // A device disabled or re-keyed before the subscription had no stream yet that could be ended (D21).
      if (!cached.isCurrent) await check();
      const { size, mail } = await shard.mail.head(device);
      stream.greet(size, mail && { mailId: formatUuid(mail.id), name: mail.name });
    } catch (error) {
      stream.close();
      throw error;
    }
    if (stream.isClosed) leave();
    return createStreamReply(stream);
  },
};
