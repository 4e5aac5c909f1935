import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { OperatorError } from '../../../core/errors.ts';

/** Connection settings of the library. */
interface DatabaseAddress {
  host?: string;
  port?: number;
  user?: string;
  password?: string | (() => string);
  database?: string;
  options?: string;
  ssl: false | ConnectionOptions;
}

/** Supported parameters of libpq. The library itself would accept any of its own options from a URL. */
const parameters = ['host', 'port', 'user', 'password', 'dbname', 'options'] as const;
const tlsParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;
type Parameter = (typeof parameters)[number] | (typeof tlsParameters)[number];
/** Value of sslrootcert for the public authorities. */
const publicAuthorities = 'system';

/** @throws OperatorError for an unusable URL, without repeating any of it */
export function checkUrl(url: string): void {
  databaseAddressOf(url);
}

/**
 * Parses `postgres://…` as libpq does, into complete settings: the library's own parsing differs between versions where
 * libpq verifies nothing, and repeats parts of the URL in its errors and warnings.
 * @throws OperatorError without repeating any of the URL
 */
export function databaseAddressOf(url: string): DatabaseAddress {
  const { host, port, user, password, dbname, options, ...tls } = partsOf(url);
  if (host?.includes(',')) throw refused('names several hosts. Name one.');
  if (
    port !== undefined &&
    !(Number.isInteger(Number(port)) && Number(port) >= 1 && Number(port) <= 65_535)
  ) {
    throw refused('has an invalid port.');
  }
  return {
    ...(host && { host }),
    ...(port && { port: Number(port) }),
    ...(user && { user }),
    // A function: otherwise the library looks for a password file, and warns about it.
    password: password ?? (() => process.env.PGPASSWORD ?? ''),
    ...(dbname && { database: dbname }),
    ...(options && { options }),
    ssl: tlsOf(tls),
  };
}

function partsOf(text: string): Partial<Record<Parameter, string>> {
  // libpq accepts a user without a host, a URL does not.
  const full = URL.canParse(text) ? text : text.replace('@/', '@localhost/');
  const parsed = URL.canParse(full) ? new URL(full) : undefined;
  if (parsed === undefined || !['postgres:', 'postgresql:'].includes(parsed.protocol)) {
    throw refused('cannot be read. Write it as postgres://user:password@host:port/database.');
  }
  const parts: Partial<Record<Parameter, string>> = {};
  try {
    if (parsed.hostname !== '') parts.host = decodeURIComponent(parsed.hostname).replace(/^\[(.+)\]$/, '$1');
    if (parsed.port !== '') parts.port = parsed.port;
    if (parsed.username !== '') parts.user = decodeURIComponent(parsed.username);
    if (parsed.password !== '') parts.password = decodeURIComponent(parsed.password);
    if (parsed.pathname.length > 1) parts.dbname = decodeURIComponent(parsed.pathname.slice(1));
  } catch {
    throw refused('has a % without two hexadecimal digits behind it. Write a literal % as %25.');
  }
  const known: readonly string[] = [...parameters, ...tlsParameters];
  for (const [name, value] of parsed.searchParams) {
    if (!known.includes(name)) throw refused(`may have no other parameters than ${known.join(', ')}.`);
    parts[name as Parameter] = value;
  }
  return parts;
}

/** TLS must verify the server: a mode that only encrypts is refused rather than taken for safe. */
function tlsOf(params: Partial<Record<(typeof tlsParameters)[number], string>>): false | ConnectionOptions {
  const { sslmode = 'disable', sslrootcert, sslcert, sslkey } = params;
  if (sslmode === 'disable') {
    if (sslrootcert ?? sslcert ?? sslkey)
      throw refused('names certificates without TLS. Add sslmode=verify-full.');
    return false;
  }
  const hasAuthority = sslrootcert !== undefined && sslrootcert !== publicAuthorities;
  // The authority makes libpq treat `require` as `verify-ca`.
  const isVerified =
    sslmode === 'verify-full' || (hasAuthority && ['require', 'verify-ca'].includes(sslmode));
  if (!isVerified) {
    throw refused(
      'has an sslmode that verifies nothing. Use sslmode=verify-full, with the authority in sslrootcert (or system), or disable.',
    );
  }
  const tls: ConnectionOptions = { rejectUnauthorized: true };
  if (hasAuthority) tls.ca = fileOf('sslrootcert', sslrootcert);
  if (sslcert !== undefined) tls.cert = fileOf('sslcert', sslcert);
  if (sslkey !== undefined) tls.key = fileOf('sslkey', sslkey);
  // Verifies the authority alone, whatever the name.
  if (sslmode !== 'verify-full') tls.checkServerIdentity = () => undefined;
  return tls;
}

function fileOf(parameter: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refused(`names a file in ${parameter} that cannot be read (${code}).`);
  }
}

function refused(why: string): OperatorError {
  return new OperatorError(`A database URL ${why}`);
}
