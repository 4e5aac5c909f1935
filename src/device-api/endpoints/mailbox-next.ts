import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail, MailboxHead } from '../../domain/mail/mail.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { createMailboxReply, type Reply, type ReplyHeaders } from '../server/reply.ts';

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

/** What an answer with the head of a mailbox has besides it. */
interface HeadOptions {
  /** Called with a mail that is handed out, and its id as text. */
  onMail?: ((id: string, mail: Mail) => void) | undefined;
  inEnvelope?: boolean;
  headers?: ReplyHeaders;
}

const noMail: ReplyHeaders = [
  ['X-Mail-Name', ''],
  ['X-Mail-Id', ''],
];
const empty = createMailboxReply(204, undefined, 0, noMail);

/** Answers the head of a mailbox (D13). */
export function headReply(
  { size, mail }: MailboxHead,
  { onMail, inEnvelope = false, headers = [] }: HeadOptions = {},
): Reply {
  if (mail === undefined) {
    return headers.length === 0 ? empty : createMailboxReply(204, undefined, 0, [...noMail, ...headers]);
  }
  const id = formatUuid(mail.id);
  onMail?.(id, mail);
  const ofMail: ReplyHeaders = [['X-Mail-Name', mail.name], ['X-Mail-Id', id], ...headers];
  return createMailboxReply(200, inEnvelope ? envelope(mail, id) : mail.payload, size, ofMail);
}

function next({ input, cached }: DeviceRequest, onMail?: HeadOptions['onMail']): Reply | Promise<Reply> {
  const options = { onMail, inEnvelope: input.query !== '' && wantsEnvelope(input.query) };
  const head = cached.mailboxHead();
  return head instanceof Promise ? head.then((later) => headReply(later, options)) : headReply(head, options);
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
  handle: (request) => next(request),
};
