import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { OperatorError } from '../../../core/errors.ts';

/** What the library connects by. */
interface DatabaseAddress {
  host?: string;
  port?: number;
  user?: string;
  password?: string | (() => string);
  database?: string;
  options?: string;
  ssl: false | ConnectionOptions;
}

/** Of libpq's parameters, those that are understood here. The library would take any name of its own from an URL. */
const parameters = ['host', 'port', 'user', 'password', 'dbname', 'options'] as const;
const tlsParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;
type Parameter = (typeof parameters)[number] | (typeof tlsParameters)[number];
/** Says of sslrootcert: the authorities that everybody trusts. */
const publicAuthorities = 'system';

/** @throws OperatorError for an URL that cannot be used, in words that repeat nothing of it. */
export function checkUrl(url: string): void {
  databaseAddressOf(url);
}

/**
 * Of `postgres://…`, as libpq reads it, with all of its own: the library's reading differs between versions where
 * libpq verifies nothing, and repeats parts of the URL in its errors and warnings.
 * @throws OperatorError in words that repeat nothing of the URL
 */
export function databaseAddressOf(url: string): DatabaseAddress {
  const { host, port, user, password, dbname, options, ...tls } = partsOf(url);
  if (host?.includes(',')) throw refused('names several hosts, and one is used');
  if (
    port !== undefined &&
    !(Number.isInteger(Number(port)) && Number(port) >= 1 && Number(port) <= 65_535)
  ) {
    throw refused('has a port that is none');
  }
  return {
    ...(host && { host }),
    ...(port && { port: Number(port) }),
    ...(user && { user }),
    // By a function: without one the library looks for a file of passwords, and warns of that on the way.
    password: password ?? (() => process.env.PGPASSWORD ?? ''),
    ...(dbname && { database: dbname }),
    ...(options && { options }),
    ssl: tlsOf(tls),
  };
}

function partsOf(text: string): Partial<Record<Parameter, string>> {
  // With a user and no host, which libpq takes and an URL does not.
  const full = URL.canParse(text) ? text : text.replace('@/', '@localhost/');
  const parsed = URL.canParse(full) ? new URL(full) : undefined;
  if (parsed === undefined || !['postgres:', 'postgresql:'].includes(parsed.protocol)) {
    throw refused('cannot be read: it is postgres://user:password@host:port/database');
  }
  const parts: Partial<Record<Parameter, string>> = {};
  try {
    if (parsed.hostname !== '') parts.host = decodeURIComponent(parsed.hostname).replace(/^\[(.+)\]$/, '$1');
    if (parsed.port !== '') parts.port = parsed.port;
    if (parsed.username !== '') parts.user = decodeURIComponent(parsed.username);
    if (parsed.password !== '') parts.password = decodeURIComponent(parsed.password);
    if (parsed.pathname.length > 1) parts.dbname = decodeURIComponent(parsed.pathname.slice(1));
  } catch {
    throw refused('has a % that two hexadecimal digits do not follow');
  }
  const known: readonly string[] = [...parameters, ...tlsParameters];
  for (const [name, value] of parsed.searchParams) {
    if (!known.includes(name)) throw refused(`may have no other parameters than ${known.join(', ')}`);
    parts[name as Parameter] = value;
  }
  return parts;
}

/** Who is not verified is not known: what encrypts and does no more than that is refused, and not taken for safe. */
function tlsOf(given: Partial<Record<(typeof tlsParameters)[number], string>>): false | ConnectionOptions {
  const { sslmode = 'disable', sslrootcert, sslcert, sslkey } = given;
  if (sslmode === 'disable') {
    if (sslrootcert ?? sslcert ?? sslkey) throw refused('names certificates and has no sslmode=verify-full');
    return false;
  }
  const hasAuthority = sslrootcert !== undefined && sslrootcert !== publicAuthorities;
  // With an authority, libpq takes `require` for `verify-ca`.
  const isVerified =
    sslmode === 'verify-full' || (hasAuthority && ['require', 'verify-ca'].includes(sslmode));
  if (!isVerified) {
    throw refused(
      'has a sslmode that verifies nothing: say sslmode=verify-full, with the authority in sslrootcert (or system), or disable',
    );
  }
  const tls: ConnectionOptions = { rejectUnauthorized: true };
  if (hasAuthority) tls.ca = fileOf('sslrootcert', sslrootcert);
  if (sslcert !== undefined) tls.cert = fileOf('sslcert', sslcert);
  if (sslkey !== undefined) tls.key = fileOf('sslkey', sslkey);
  // By the authority alone, whatever the name.
  if (sslmode !== 'verify-full') tls.checkServerIdentity = () => undefined;
  return tls;
}

function fileOf(parameter: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refused(`names a file in ${parameter} that cannot be read (${code})`);
  }
}

function refused(why: string): OperatorError {
  return new OperatorError(`An URL of a database ${why}.`);
}
