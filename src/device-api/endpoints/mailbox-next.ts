import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail, MailboxHead } from '../../domain/mail/mail.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { createReply, type Reply } from '../server/reply.ts';

const empty = createReply(204, undefined, [
  ['X-Mailbox-Size', '0'],
  ['X-Mail-Name', ''],
  ['X-Mail-Id', ''],
]);

/** Wraps a mail in D13's older shape. The payload is copied byte for byte. */
function envelope(mail: Mail, id: string): Buffer {
  const front = `{"id":"${id}","msg_id":"${id}","name":"${mail.name}","payload":`;
  return Buffer.concat([Buffer.from(front), mail.payload, Buffer.from('}')]);
}

function wantsEnvelope(query: string): boolean {
  const shape = new URLSearchParams(query).get('shape');
  if (shape === null || shape === 'payload') return false;
  if (shape === 'envelope') return true;
  throw new ApiError('bad_request', { msg: 'shape is envelope or payload.' });
}

function next(
  { input, cached }: DeviceRequest,
  noteFetch: (id: string, mail: Mail) => void,
): Reply | Promise<Reply> {
  const inEnvelope = input.query !== '' && wantsEnvelope(input.query);
  const answer = ({ size, mail }: MailboxHead): Reply => {
    if (mail === undefined) return empty;
    const id = formatUuid(mail.id);
    noteFetch(id, mail);
    return createReply(200, inEnvelope ? envelope(mail, id) : mail.payload, [
      ['X-Mailbox-Size', String(size)],
      ['X-Mail-Name', mail.name],
      ['X-Mail-Id', id],
    ]);
  };
  const head = cached.mailboxHead();
  return head instanceof Promise ? head.then(answer) : answer(head);
}

/** `GET /v1/mailbox/next`: a peek that changes nothing but the mail's fetch count (D13). */
export const mailboxNext: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/next',
  takesQuery: true,
  handle: (request: DeviceRequest, { activity }: HttpContext) =>
    next(request, (id, mail) => activity.fetched(request.cached, id, mail.id)),
};

/** `HEAD /v1/mailbox/next`: the same without the body; not counted as a fetch, since nothing was delivered. */
export const mailboxNextHead: Endpoint = {
  method: 'HEAD',
  path: '/v1/mailbox/next',
  takesQuery: true,
  handle: (request) => next(request, () => {}),
};
