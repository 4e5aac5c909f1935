import type { DeviceKey } from '../core/identity.ts';
import { formatUuid } from '../core/uuid.ts';
import { encodeTextRecord } from './log-record.ts';
import { readFetchCount, readFirstFetchedAtMs, readName, readRequeueCount } from './mail-record.ts';
import type { MailEnd } from './shard.ts';

/** A change of a mail, as the log tells it. `fetched`: for the first time, where that is noted while it waits. */
export type MailEvent = 'delayed' | 'queued' | 'fetched' | 'requeued' | 'replayed' | MailEnd;

/**
 * A record of the log for a change of a mail (D17): of kind `receipt`, its schema the mail's name, its payload JSON
 * by hand, since it is made for every mail. Of mail that is just sent there is nothing to count yet.
 */
export function encodeMailEvent(device: DeviceKey, mail: Buffer, event: MailEvent, more = ''): Uint8Array {
  const counts = event === 'queued' || event === 'delayed' ? '' : countsOf(mail);
  const text = `{"mail_id":"${formatUuid(mail)}","event":"${event}"${counts}${more}}`;
  return encodeTextRecord(device, 'receipt', readName(mail), text);
}

function countsOf(mail: Buffer): string {
  const firstMs = readFirstFetchedAtMs(mail);
  const first = firstMs === 0 ? 'null' : `"${new Date(firstMs).toISOString()}"`;
  return `,"requeue_count":${readRequeueCount(mail)},"fetch_count":${readFetchCount(mail)},"first_fetched_at":${first}`;
}
