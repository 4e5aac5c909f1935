import { OperatorError } from './errors.ts';

export interface HostPort {
  host: string;
  port: number;
}

/** Splits a validated `HOST:PORT`, removing brackets around IPv6. */
export function parseHostPort(text: string): HostPort {
  const colon = text.lastIndexOf(':');
  const port = Number(text.slice(colon + 1));
  if (port > 65_535) throw new OperatorError(`Configuration: port ${port} is out of range. Use 0 to 65535.`);
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port };
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Formats a host for a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
