import type { BroadcastMailDocument } from '../../../contract/broadcast.ts';
import { serverNow, spanText } from '../../server/clock.ts';

type Mail = Pick<BroadcastMailDocument, 'state' | 'fetch_count' | 'device' | 'behind' | 'refused'>;

const stateTexts: Readonly<Record<Mail['state'], string>> = {
  queued: 'waits in the mailbox',
  delayed: 'waits for its time',
  rejected: 'rejected by the device',
  expired: 'expired',
  over_requeued: 'requeued too often',
  mailbox_full: 'mailbox full when it was due',
  withdrawn: 'withdrawn',
  replaced: 'replaced by a newer mail',
  unknown: 'not known any more',
  acked: 'acknowledged',
};

/** Says what became of the mail on one device, or why nothing has, in a few words. */
export function whyOf({ state, fetch_count, device, behind, refused }: Mail): string {
  if (state === 'expired') return `${stateTexts.expired}, ${fetchedText(fetch_count)}`;
  if (device === null && (state === 'unknown' || state === 'queued')) return 'gone with its device';
  if (device === null || state !== 'queued') return stateTexts[state];
  if (!device.enabled) return 'the device is disabled';
  if (refused !== null) return `calls, and is refused: ${refusalText(refused)}`;
  // Whatever holds up the mail in front, nothing is known of this one.
  if (behind !== null && (behind.fetch_count > 0 || device.state !== 'offline'))
    return `waits behind ${behind.name}, ${fetchedText(behind.fetch_count)}`;
  if (fetch_count > 0) return `${fetchedText(fetch_count)}, not answered`;
  if (device.last_seen === null) return 'has never called';
  if (device.state !== 'offline') return `${device.state}, but has not fetched it`;
  return `offline, last seen ${spanText(serverNow() - Date.parse(device.last_seen))} ago`;
}

function refusalText(reason: string): string {
  return reason === 'device_secret_incorrect' ? 'wrong secret' : reason.replaceAll('_', ' ');
}

function fetchedText(count: number): string {
  return count === 0 ? 'never fetched' : count === 1 ? 'fetched once' : `fetched ${count} times`;
}
