import { expect, it } from 'vitest';
import { whyOf } from '../../../../src/console/screens/broadcasts/why.ts';

type Mail = Parameters<typeof whyOf>[0];

const device = { name: 'Lamp', enabled: true, state: 'offline', last_seen: null } as const;
const mail: Mail = { state: 'queued', fetch_count: 0, device, behind: null, refused: null };
const behind = { mail_id: 'id', name: 'water', fetch_count: 171 };
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
  [
    'waits behind water, fetched 171 times',
    { ...mail, device: { ...device, state: 'active', last_seen: hourAgo }, behind },
  ],
  ['has never called', { ...mail, behind: { ...behind, fetch_count: 0 } }],
  ['calls, and is refused: wrong secret', { ...mail, refused: 'device_secret_incorrect' }],
  ['gone with its device', { ...mail, device: null }],
  ['gone with its device', { ...mail, state: 'unknown', device: null }],
  ['not known any more', { ...mail, state: 'unknown' }],
  ['expired, never fetched', { ...mail, state: 'expired' }],
  ['expired, fetched 2 times', { ...mail, state: 'expired', fetch_count: 2, device: null }],
  ['acknowledged', { ...mail, state: 'acked', device: null }],
])('%s', (text, of) => {
  expect(whyOf(of)).toBe(text);
});
