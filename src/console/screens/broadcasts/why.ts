import type { BroadcastMailDocument } from '../../../contract/broadcast.ts';
import { serverNow, spanText } from '../../server/clock.ts';

type Mail = Pick<BroadcastMailDocument, 'state' | 'fetch_count' | 'device'>;

const ended: Readonly<Record<Exclude<Mail['state'], 'queued' | 'expired' | 'unknown'>, string>> = {
  acked: 'acknowledged',
  rejected: 'rejected by the device',
  over_requeued: 'requeued too often',
  mailbox_full: 'mailbox full when it was due',
  withdrawn: 'withdrawn',
  delayed: 'waits for its time',
};

/** What became of the mail on one device, or why nothing has, in a few words. */
export function whyOf({ state, fetch_count, device }: Mail): string {
  if (state === 'expired') return `expired, ${fetchedText(fetch_count)}`;
  if (state === 'unknown') return device === null ? 'gone with its device' : 'no longer known';
  if (state !== 'queued') return ended[state];
  if (device === null) return 'gone with its device';
  if (!device.enabled) return 'the device is disabled';
  if (fetch_count > 0) return `${fetchedText(fetch_count)}, not answered`;
  if (device.last_seen === null) return 'has never called';
  if (device.state !== 'offline') return `${device.state}, but has not fetched it`;
  return `offline, last seen ${spanText(serverNow() - Date.parse(device.last_seen))} ago`;
}

function fetchedText(count: number): string {
  return count === 0 ? 'never fetched' : count === 1 ? 'fetched once' : `fetched ${count} times`;
}
