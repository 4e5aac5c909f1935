/**
 * Whether forwarders may send to that host. `allowed` is `forwardHosts`: names and addresses separated by commas,
 * `*.example.com` for all names below one, nothing for any host. What a name resolves to is not looked at: whoever
 * allows a name trusts it.
 */
export function isHostAllowed(host: string, allowed: string): boolean {
  const wanted = bare(host);
  const entries = allowed.split(',').map((entry) => bare(entry.trim()));
  const given = entries.filter((entry) => entry !== '');
  if (given.length === 0) return true;
  return given.some((entry) => (entry.startsWith('*.') ? wanted.endsWith(entry.slice(1)) : wanted === entry));
}

/** Without the brackets of an IPv6 address and the dot that ends an absolute name. */
function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
