import { BlockList, isIP } from 'node:net';

/**
 * Addresses that mean something on this machine's own link alone: clouds hand out credentials there, to whoever asks
 * from the machine. The last two are those of IPv4 in IPv6, as NAT64 and as hosts of old write them.
 */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addSubnet('fd00:ec2::', 32, 'ipv6');
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('::a9fe:0', 112, 'ipv6');

/** With or without brackets; false for a name. */
export function isLinkLocal(address: string): boolean {
  const [text = ''] = bare(address).split('%');
  const version = isIP(text);
  // An IPv4 address inside an IPv6 one is looked at as what it is.
  return version !== 0 && linkLocal.check(text, version === 4 ? 'ipv4' : 'ipv6');
}

/** Whether forwarders may send to hosts that nobody has named, as long as these are not link-local. */
export function isAnyHostAllowed(allowed: string): boolean {
  return entriesOf(allowed).length === 0;
}

/**
 * Whether forwarders may send to that host. `allowed` is `forwardHosts`: names and addresses separated by commas,
 * `*.example.com` for all names below one, nothing for any host that is not link-local. What a name resolves to is not
 * looked at here: whoever allows a name trusts it.
 */
export function isHostAllowed(host: string, allowed: string): boolean {
  const wanted = bare(host);
  if (isAnyHostAllowed(allowed)) return !isLinkLocal(wanted);
  return entriesOf(allowed).some((entry) =>
    entry.startsWith('*.') ? wanted.endsWith(entry.slice(1)) : wanted === entry,
  );
}

function entriesOf(allowed: string): string[] {
  return allowed
    .split(',')
    .map((entry) => bare(entry.trim()))
    .filter((entry) => entry !== '');
}

/** Without the brackets of an IPv6 address and the dot that ends an absolute name. */
function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
