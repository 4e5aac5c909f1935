import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { pageKeyHeader } from '../../contract/access/page-key.ts';
import type { SessionSecret } from '../../core/identity.ts';

const pageKeyField = pageKeyHeader.toLowerCase();
/** Cookies of a browser are few and short: what is longer than this is none of ours. */
const cookieLengthMax = 8_192;

/**
 * Cookie with the half of a session's secret that no script can read. All ports of a host share their cookies, so the
 * name has the port: servers side by side, or behind tunnels, do not log each other's operators out.
 */
function cookieName({ headers: { host = '' } }: IncomingMessage): string {
  const port = /:(\d{1,5})$/.exec(host)?.[1];
  return port === undefined ? 'fleetpost' : `fleetpost-${port}`;
}

/** Name that a browser accepts over HTTPS alone, from this host alone, not from one above or below it. */
function secureName(request: IncomingMessage): string {
  return `__Host-${cookieName(request)}`;
}

/** A proxy may have ended TLS before us; then the browser says so in the Origin of its login. */
function isSecure({ headers, socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket || headers.origin?.startsWith('https://') === true;
}

/** Returns the halves that came: one alone opens nothing. */
export function sessionHalves(request: IncomingMessage): Partial<SessionSecret> {
  const key = request.headers[pageKeyField];
  const cookie = cookieOf(request, secureName(request)) ?? cookieOf(request, cookieName(request));
  return { ...(cookie !== undefined && { cookie }), ...(typeof key === 'string' && { key }) };
}

function cookieOf({ headers: { cookie = '' } }: IncomingMessage, name: string): string | undefined {
  if (cookie.length > cookieLengthMax) return undefined;
  const pairs = cookie.split(/;\s*/).map((pair) => pair.split('='));
  return pairs.find(([one]) => one === name)?.[1];
}

/** The value of Set-Cookie that has the browser keep its half as long as the session can last. */
export function setCookie(request: IncomingMessage, { cookie }: SessionSecret, seconds: number): string {
  return isSecure(request)
    ? `${secureName(request)}=${cookie}; ${attributes}; Max-Age=${seconds}; Secure`
    : `${cookieName(request)}=${cookie}; ${attributes}; Max-Age=${seconds}`;
}

/** The values of Set-Cookie that have the browser forget its half, under whichever name it has it. */
export function clearCookie(request: IncomingMessage): string[] {
  return [
    `${cookieName(request)}=; ${attributes}; Max-Age=0`,
    `${secureName(request)}=; ${attributes}; Max-Age=0; Secure`,
  ];
}

const attributes = 'Path=/; HttpOnly; SameSite=Strict';
