import { expect, it } from 'vitest';
import { whyOf } from '../../../../src/console/screens/broadcasts/why.ts';
import type { BroadcastMailDocument } from '../../../../src/contract/broadcast.ts';

type Mail = Pick<BroadcastMailDocument, 'state' | 'fetch_count' | 'device'>;

const device = { name: 'Lamp', enabled: true, state: 'offline', last_seen: null } as const;
const mail: Mail = { state: 'queued', fetch_count: 0, device };
const hourAgo = new Date(Date.now() - 3_600_500).toISOString();

it.each<[string, Mail]>([
  ['the device is disabled', { ...mail, device: { ...device, enabled: false } }],
  ['fetched once, not answered', { ...mail, fetch_count: 1 }],
  ['fetched 3 times, not answered', { ...mail, fetch_count: 3 }],
  ['has never called', mail],
  [
    'connected, but has not fetched it',
    { ...mail, device: { ...device, state: 'connected', last_seen: hourAgo } },
  ],
  ['offline, last seen 1 h ago', { ...mail, device: { ...device, last_seen: hourAgo } }],
  ['gone with its device', { ...mail, device: null }],
  ['gone with its device', { ...mail, state: 'unknown', device: null }],
  ['not known any more', { ...mail, state: 'unknown' }],
  ['expired, never fetched', { ...mail, state: 'expired' }],
  ['expired, fetched 2 times', { ...mail, state: 'expired', fetch_count: 2, device: null }],
  ['acknowledged', { ...mail, state: 'acked', device: null }],
])('%s', (text, of) => {
  expect(whyOf(of)).toBe(text);
});
