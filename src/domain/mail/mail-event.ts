import { formatUuid } from '../../core/uuid.ts';
import type { MailEnd } from './ended-mail.ts';

/** A mail event in the log. `fetched`: the first fetch, if recorded while the mail is queued. */
export type MailEvent = 'delayed' | 'queued' | 'fetched' | 'requeued' | 'replayed' | MailEnd;

/** Counts in all events but the first, which has none yet. */
export interface MailCounts {
  requeueCount: number;
  fetchCount: number;
  firstFetchedAtMs: number | undefined;
}

/** True if an event has counts. */
export function hasCounts(event: MailEvent): boolean {
  return event !== 'queued' && event !== 'delayed';
}

/**
 * Formats a mail event for the log (D17). Hand-written JSON, since every mail has events. `newMailId`: of the mail that a letter
 * is replayed as, or that replaces this one.
 */
export function mailEventText(
  mailId: Uint8Array,
  event: MailEvent,
  counts: MailCounts | undefined,
  newMailId?: Uint8Array,
): string {
  const counted = counts === undefined ? '' : countsText(counts);
  const next = newMailId === undefined ? '' : `,"new_mail_id":"${formatUuid(newMailId)}"`;
  return `{"mail_id":"${formatUuid(mailId)}","event":"${event}"${counted}${next}}`;
}

function countsText({ requeueCount, fetchCount, firstFetchedAtMs }: MailCounts): string {
  const first = firstFetchedAtMs === undefined ? 'null' : `"${new Date(firstFetchedAtMs).toISOString()}"`;
  return `,"requeue_count":${requeueCount},"fetch_count":${fetchCount},"first_fetched_at":${first}`;
}
