import { formatUuid } from '../../core/uuid.ts';
import type { MailEnd } from './ended-mail.ts';

/** A change of a mail, as the log tells it. `fetched`: for the first time, where that is noted while it waits. */
export type MailEvent = 'delayed' | 'queued' | 'fetched' | 'requeued' | 'replayed' | MailEnd;

/** What is told with all changes but the first, when there is nothing to count yet. */
export interface MailCounts {
  requeueCount: number;
  fetchCount: number;
  firstFetchedAtMs: number | undefined;
}

/** Whether the counts are told with a change. */
export function hasCounts(event: MailEvent): boolean {
  return event !== 'queued' && event !== 'delayed';
}

/** What the log tells of a change of a mail (D17): JSON by hand, since it is made for every mail. */
export function mailEventText(
  mailId: Uint8Array,
  event: MailEvent,
  counts: MailCounts | undefined,
  newMailId?: Uint8Array,
): string {
  const counted = counts === undefined ? '' : countsText(counts);
  const replayed = newMailId === undefined ? '' : `,"new_mail_id":"${formatUuid(newMailId)}"`;
  return `{"mail_id":"${formatUuid(mailId)}","event":"${event}"${counted}${replayed}}`;
}

function countsText({ requeueCount, fetchCount, firstFetchedAtMs }: MailCounts): string {
  const first = firstFetchedAtMs === undefined ? 'null' : `"${new Date(firstFetchedAtMs).toISOString()}"`;
  return `,"requeue_count":${requeueCount},"fetch_count":${fetchCount},"first_fetched_at":${first}`;
}
