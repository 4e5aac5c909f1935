import { BlockList, isIP } from 'node:net';

/** Where clouds serve credentials to any client on the machine: link-local addresses, and those beside them. */
const ipv4: readonly (readonly [address: string, prefix: number])[] = [
  ['169.254.0.0', 16],
  // Alibaba, Oracle, and the agent of Azure.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['168.63.129.16', 32],
];
const ipv6: typeof ipv4 = [
  ['fe80::', 10],
  // Amazon, Google, Oracle, Akamai and Scaleway.
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
  ['fd00:c1::a9fe:a9fe', 128],
  ['fd00:a9fe:a9fe::1', 128],
  ['fd00:42::42', 128],
  // All of local NAT64, where only its network knows which bits are the IPv4 address, and of Teredo, which hides it.
  ['64:ff9b:1::', 48],
  ['2001::', 32],
];

const metadata = new BlockList();
for (const [address, prefix] of ipv6) metadata.addSubnet(address, prefix, 'ipv6');
for (const [address, prefix] of ipv4) {
  metadata.addSubnet(address, prefix, 'ipv4');
  // The same in IPv6: IPv4-compatible, IPv4-translated, NAT64 and 6to4.
  for (const before of ['::', '::ffff:0:', '64:ff9b::'])
    metadata.addSubnet(before + address, 96 + prefix, 'ipv6');
  metadata.addSubnet(`2002:${hexadecimal(address)}::`, 16 + prefix, 'ipv6');
}

/** The two groups of an IPv6 address that an IPv4 address is in it. */
function hexadecimal(address: string): string {
  const digits = Buffer.from(address.split('.').map(Number)).toString('hex');
  return `${digits.slice(0, 4)}:${digits.slice(4)}`;
}

/** Checks an address with or without brackets; false for a name. */
export function isMetadataAddress(address: string): boolean {
  const [text = ''] = bare(address).split('%');
  const version = isIP(text);
  // BlockList checks an IPv4-mapped IPv6 address as the IPv4 address it is.
  return version !== 0 && metadata.check(text, version === 4 ? 'ipv4' : 'ipv6');
}

/** True if forwarders may send to any host but metadata addresses. */
export function isAnyHostAllowed(allowed: string): boolean {
  return entriesOf(allowed).length === 0;
}

/**
 * True if forwarders may send to that host. `allowed` is `forwardHosts`: names and addresses separated by commas,
 * `*.example.com` for all names below one, empty for any host but metadata addresses. Does not resolve names: an
 * allowed name is trusted.
 */
export function isHostAllowed(host: string, allowed: string): boolean {
  const name = bare(host);
  if (isAnyHostAllowed(allowed)) return !isMetadataAddress(name);
  return entriesOf(allowed).some((entry) =>
    entry.startsWith('*.') ? name.endsWith(entry.slice(1)) : name === entry,
  );
}

function entriesOf(allowed: string): string[] {
  return allowed
    .split(',')
    .map((entry) => bare(entry.trim()))
    .filter((entry) => entry !== '');
}

/** Removes the brackets of an IPv6 address and the final dot of an absolute name. */
function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
