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
