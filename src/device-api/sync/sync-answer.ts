import type { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail } from '../../domain/mail/mail.ts';
import type { SyncOutcome } from '../../domain/sync/sync.ts';
import { createMailboxReply, createReply, type Reply, statusOf } from '../server/reply.ts';

/** Why each item of a sync was refused; undefined for one that was not. */
export interface SyncVerdict {
  records: readonly (ApiError | undefined)[];
  settlements: readonly (ApiError | undefined)[];
}

/** Answers a sync (D29): the payloads of mail byte for byte. */
export function syncReply(
  { records, settlements }: SyncVerdict,
  { queue, mailbox }: SyncOutcome,
  strict: boolean,
): Reply {
  let front = `{"records":[${itemsText(records, 201, strict)}],"settled":[${itemsText(settlements, 200, strict)}]`;
  if (queue !== undefined) front += `,"stored_to":${queue.storedTo},"skipped":${queue.skipped}`;
  const end = `,"time":${Date.now()}}`;
  if (mailbox === undefined) return createReply(200, front + end);
  front += `,"mailbox_size":${mailbox.size},"mail":[`;
  if (mailbox.mails.length === 0) return createMailboxReply(200, `${front}]${end}`, mailbox.size);
  const mails = mailbox.mails.flatMap((mail, index) => partsOf(mail, index === 0 ? front : ','));
  return createMailboxReply(200, Buffer.concat([...mails, Buffer.from(`]${end}`)]), mailbox.size);
}

function itemsText(errors: readonly (ApiError | undefined)[], status: number, strict: boolean): string {
  const done = `{"status":${status}}`;
  const refused = new Map<ApiError, string>();
  let text = '';
  for (const error of errors) {
    if (text !== '') text += ',';
    text += error === undefined ? done : refusedText(error, strict, refused);
  }
  return text;
}

/** The text of an error, which hundreds of items may share. */
function refusedText(error: ApiError, strict: boolean, known: Map<ApiError, string>): string {
  const text = known.get(error) ?? JSON.stringify({ status: statusOf(error, strict), ...error.toJSON() });
  known.set(error, text);
  return text;
}

/** No name has a character that JSON would escape. */
function partsOf({ id, name, payload, requeueCount }: Mail, before: string): Buffer[] {
  const head = `${before}{"id":"${formatUuid(id)}","name":"${name}","payload":`;
  return [Buffer.from(head), payload, Buffer.from(`,"requeue_count":${requeueCount}}`)];
}
