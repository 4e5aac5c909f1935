import { BlockList, isIP } from 'node:net';

/**
 * Link-local addresses: clouds serve credentials there to any client on the machine. The last two are IPv4 in IPv6:
 * NAT64, and the deprecated IPv4-compatible form.
 */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addSubnet('fd00:ec2::', 32, 'ipv6');
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('::a9fe:0', 112, 'ipv6');

/** Checks an address with or without brackets; false for a name. */
export function isLinkLocal(address: string): boolean {
  const [text = ''] = bare(address).split('%');
  const version = isIP(text);
  // BlockList checks an IPv4-mapped IPv6 address as the IPv4 address it is.
  return version !== 0 && linkLocal.check(text, version === 4 ? 'ipv4' : 'ipv6');
}

/** True if forwarders may send to any host that is not link-local. */
export function isAnyHostAllowed(allowed: string): boolean {
  return entriesOf(allowed).length === 0;
}

/**
 * True if forwarders may send to that host. `allowed` is `forwardHosts`: names and addresses separated by commas,
 * `*.example.com` for all names below one, empty for any host that is not link-local. Does not resolve names: an
 * allowed name is trusted.
 */
export function isHostAllowed(host: string, allowed: string): boolean {
  const name = bare(host);
  if (isAnyHostAllowed(allowed)) return !isLinkLocal(name);
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
