import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { configuredHosts, hostRefusal } from '../../../src/admin-api/server/host-check.ts';

const allowed = configuredHosts('fleet.example, OTHER.example');
const isRefused = (headers: Record<string, string>, localAddress = '192.0.2.7'): boolean =>
  hostRefusal({ headers, socket: { localAddress } } as unknown as IncomingMessage, allowed) !== undefined;

it.each([
  'localhost',
  'LOCALHOST.:8080',
  '127.0.0.1:8080',
  '127.9.9.9',
  '[::1]:8080',
  '192.0.2.7:443',
  'fleet.example',
  'Fleet.Example.:443',
  'other.example',
])('D27: %s is a host that the listener answers to', (host) => {
  expect(isRefused({ host })).toBe(false);
});

it.each([
  '',
  'example',
  'fleet.example.evil',
  'evil.fleet.example',
  '192.0.2.8',
  'localhost.evil',
  '127.0.0.1.evil',
])('D27: %j is none', (host) => {
  expect(isRefused({ host })).toBe(true);
});

it('D27: the address of the listener counts as IPv4 where it is mapped to IPv6', () => {
  expect(isRefused({ host: '192.0.2.7' }, '::ffff:192.0.2.7')).toBe(false);
});

it('D27: requests for pages of other sites are refused under any name, those of the console are not', () => {
  const host = 'localhost';
  const sites = ['cross-site', 'same-site', 'same-origin', 'none'];
  expect(sites.map((site) => isRefused({ host, 'sec-fetch-site': site }))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect([isRefused({}), isRefused({ 'sec-fetch-site': 'cross-site' })]).toEqual([false, true]);
});
