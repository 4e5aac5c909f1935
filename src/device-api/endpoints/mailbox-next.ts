import { waitSecondsMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail, MailboxHead } from '../../domain/mail/mail.ts';
import { mayBeReplaced } from '../../domain/mail/replaceable-mails.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import { createMailboxReply, type Reply, type ReplyHeaders } from '../server/reply.ts';
import { secretCheckOf } from './events.ts';
import { keepFetch, placeOf } from './kept-fetch.ts';

/** Wraps a mail in D13's older shape. The payload is copied byte for byte. */
function envelope(mail: Mail, id: string): Buffer {
  const front = `{"id":"${id}","msg_id":"${id}","name":"${mail.name}","payload":`;
  return Buffer.concat([Buffer.from(front), mail.payload, Buffer.from('}')]);
}

function wantsEnvelope(shape: string | null): boolean {
  if (shape === null || shape === 'payload') return false;
  if (shape === 'envelope') return true;
  throw new ApiError('bad_request', { msg: 'shape is envelope or payload.' });
}

function waitSecondsOf(wait: string | null): number {
  if (wait === null) return 0;
  const seconds = /^\d{1,3}$/.test(wait) ? Number(wait) : 0;
  if (seconds >= 1 && seconds <= waitSecondsMax) return seconds;
  throw new ApiError('bad_request', { msg: `wait is 1 to ${waitSecondsMax} seconds.` });
}

/** What an answer with the head of a mailbox has besides it. */
interface HeadOptions {
  inEnvelope?: boolean;
  headers?: ReplyHeaders;
}

const noMail: ReplyHeaders = [
  ['X-Mail-Name', ''],
  ['X-Mail-Id', ''],
];
const empty = createMailboxReply(204, undefined, 0, noMail);

/** Answers the head of a mailbox (D13). Calls `onMail` with a mail that is handed out, and its id as text. */
function headReply(
  { size, mail }: MailboxHead,
  { inEnvelope = false, headers = [] }: HeadOptions,
  onMail?: (id: string, mail: Mail) => void,
): Reply {
  if (mail === undefined) {
    return headers.length === 0 ? empty : createMailboxReply(204, undefined, 0, [...noMail, ...headers]);
  }
  const id = formatUuid(mail.id);
  onMail?.(id, mail);
  const ofMail: ReplyHeaders = [['X-Mail-Name', mail.name], ['X-Mail-Id', id], ...headers];
  return createMailboxReply(200, inEnvelope ? envelope(mail, id) : mail.payload, size, ofMail);
}

/** Answers the head of a mailbox, and counts a fetch of its mail (D13). */
export function fetchedReply(
  request: DeviceRequest,
  context: HttpContext,
  head: MailboxHead,
  options: HeadOptions,
): Reply | Promise<Reply> {
  const { cached, device, shard } = request;
  const count = (id: string, mail: Mail): void => context.activity.fetched(cached, id, mail.id);
  if (head.mail === undefined || !mayBeReplaced(head.mail)) return headReply(head, options, count);
  const mailsOf = ({ mail }: MailboxHead): Mail[] => (mail === undefined ? [] : [mail]);
  const kept = keepFetch(request, context, head, mailsOf, () => shard.mail.head(device));
  return kept.then(({ read, stored }) =>
    headReply(read, options, (id, mail) => {
      if (!stored.has(placeOf(id))) count(id, mail);
    }),
  );
}

const noMailHead: MailboxHead = { size: 0, mail: undefined };

/**
 * Waits for mail (D31). Subscribes before it reads the mailbox: of mail that arrives in between it is told. A newer
 * request of the device, the end of the server, or of the device's right to call, ends it as one without mail.
 */
async function awaitHead(
  request: DeviceRequest,
  seconds: number,
  { streams }: HttpContext,
): Promise<MailboxHead> {
  const { cached, device, exchange, shard } = request;
  let leave: () => void = () => {};
  const check = secretCheckOf(request);
  const wait = streams.wait(seconds, () => leave(), check);
  exchange.pause(wait, seconds);
  try {
    leave = await shard.streams.subscribe(device, wait);
    if (!cached.isCurrent) await check();
    while (!wait.isEnded) {
      const { isLate } = wait;
      const head = await shard.mail.head(device);
      if (head.mail !== undefined || isLate) return head;
      await wait.news();
    }
    return noMailHead;
  } finally {
    wait.close();
    exchange.resume();
  }
}

type HeadAnswer = (head: MailboxHead, options: HeadOptions) => Reply | Promise<Reply>;

/** Answers with the head of the mailbox, as soon as there is one if the device waits for it. */
function next(request: DeviceRequest, context: HttpContext, answer: HeadAnswer): Reply | Promise<Reply> {
  const { cached, input } = request;
  const query = input.query === '' ? undefined : new URLSearchParams(input.query);
  const options = { inEnvelope: query !== undefined && wantsEnvelope(query.get('shape')) };
  const seconds = query === undefined ? 0 : waitSecondsOf(query.get('wait'));
  const head = cached.mailboxHead();
  if (seconds === 0) {
    return head instanceof Promise ? head.then((later) => answer(later, options)) : answer(head, options);
  }
  return Promise.resolve(head)
    .then((now) => (now.mail === undefined ? awaitHead(request, seconds, context) : now))
    .then((later) => answer(later, options));
}

/** `GET /v1/mailbox/next`: a peek that changes nothing but the mail's fetch count (D13). */
export const mailboxNext: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/next',
  takesQuery: true,
  handle: (request: DeviceRequest, context: HttpContext) =>
    next(request, context, (head, options) => fetchedReply(request, context, head, options)),
};

/** `HEAD /v1/mailbox/next`: the same without the body; not counted as a fetch, since nothing was delivered. */
export const mailboxNextHead: Endpoint = {
  method: 'HEAD',
  path: '/v1/mailbox/next',
  takesQuery: true,
  handle: (request, context) => next(request, context, (head, options) => headReply(head, options)),
};
