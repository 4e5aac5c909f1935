import { BlockList, isIP } from 'node:net';

/** Link-local addresses: clouds serve credentials there to any client on the machine. */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addSubnet('fd00:ec2::', 32, 'ipv6');
// The same in IPv6: IPv4-compatible, IPv4-translated, NAT64 and 6to4.
linkLocal.addSubnet('::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('::ffff:0:a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('2002:a9fe::', 32, 'ipv6');
// All of local NAT64, where only its network knows which bits are the IPv4 address, and of Teredo, which hides it.
linkLocal.addSubnet('64:ff9b:1::', 48, 'ipv6');
linkLocal.addSubnet('2001::', 32, 'ipv6');

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
