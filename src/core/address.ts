import { isIP, isIPv6 } from 'node:net';

/** ::ffff:0:0/96: how a dual-stack socket shows IPv4 addresses. */
const mappedPrefix = Buffer.from('00000000000000000000ffff', 'hex');
const ipv6Bytes = 16;
/** A /64, the smallest IPv6 prefix assigned to a site: its addresses are one client's to choose. */
const siteBytes = 8;

/** Formats an address for people. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length !== ipv6Bytes) return [...bytes].join('.');
  if (mappedPrefix.equals(bytes.subarray(0, mappedPrefix.length)))
    return [...bytes.subarray(mappedPrefix.length)].join('.');
  const groups = Array.from({ length: 8 }, (_, index) =>
    Buffer.from(bytes)
      .readUInt16BE(2 * index)
      .toString(16),
  );
  // The URL parser knows how IPv6 is abbreviated.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/**
 * The unit that limits count as one address, as text: an IPv4 address, or the /64 of an IPv6 one. `bytes` has 4 or 16
 * bytes in network order, or none for a closed connection.
 */
export function clientAddressOf(bytes: Uint8Array): string {
  if (bytes.length !== ipv6Bytes) return [...bytes].join('.');
  if (mappedPrefix.equals(bytes.subarray(0, mappedPrefix.length)))
    return [...bytes.subarray(mappedPrefix.length)].join('.');
  return `${Buffer.from(bytes.subarray(0, siteBytes)).toString('hex')}/64`;
}

const siteSuffix = '/64';

/** Formats what `clientAddressOf` returned for people. */
export function clientAddressText(address: string): string {
  if (!address.endsWith(siteSuffix)) return address;
  const site = Buffer.alloc(ipv6Bytes);
  site.write(address.slice(0, -siteSuffix.length), 'hex');
  return addressText(site) + siteSuffix;
}

/** Reads an address that a person gives, or a /64, as `clientAddressOf` returns it; undefined if it is none. */
export function parseClientAddress(text: string): string | undefined {
  const address = text.endsWith(siteSuffix) ? text.slice(0, -siteSuffix.length) : text;
  if (isIP(address) === 0 || address.includes('%') || (address !== text && !isIPv6(address)))
    return undefined;
  if (!isIPv6(address)) return clientAddressOf(Buffer.from(address.split('.').map(Number)));
  // The URL parser writes an IPv4 part in hexadecimal too.
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const bytesOf = (groups: string): Buffer =>
    Buffer.from(
      groups
        .split(':')
        .map((group) => (group === '' ? '' : group.padStart(4, '0')))
        .join(''),
      'hex',
    );
  const bytes = Buffer.alloc(ipv6Bytes);
  bytes.set(bytesOf(head));
  const end = bytesOf(tail);
  bytes.set(end, ipv6Bytes - end.length);
  return clientAddressOf(bytes);
}

export interface HostPort {
  host: string;
  port: number;
}

/** Splits a validated `HOST:PORT`, removing brackets around IPv6. */
export function parseHostPort(text: string): HostPort {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
}

/** True if only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Formats a host for a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
