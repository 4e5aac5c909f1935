import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import {
  adminVariable,
  contextVariable,
  isAdminUrl,
  tokenVariable,
} from '../core/config/client-variables.ts';
import { OperatorError } from '../core/errors.ts';
import { AdminClient } from './admin-client.ts';
import { type Context, contextOf } from './contexts.ts';

/** Options of every client command. */
export interface ConnectionOptions {
  data?: string;
  admin?: string;
  adminCa?: string;
  context?: string;
  token?: string;
  json?: boolean;
}

export function withConnectionOptions(command: Command): Command {
  return command
    .option(
      '--data <dir>',
      `data folder of the running server; or set FLEETPOST_DATA; default: ${process.env.FLEETPOST_DATA || './data'}`,
    )
    .option(
      '--admin <url>',
      `URL of the admin API, instead of a data folder; or set ${adminVariable}; needs a token`,
    )
    .option(
      '--admin-ca <file>',
      'certificates to trust for an admin API in HTTPS, PEM, instead of the usual ones',
    )
    .addOption(
      new Option(
        '--context <name>',
        `server of "fleetpost context add"; or set ${contextVariable}`,
      ).conflicts(['data', 'admin']),
    )
    .option(
      '--token <token>',
      `API token, instead of the one of the data folder or the context; or set ${tokenVariable}`,
    )
    .option('--json', 'print one JSON document');
}

/**
 * Connects to the server given by --admin, --data or --context, or else by the environment or the current context.
 * @throws OperatorError if the options do not lead to a server.
 */
export function connect(options: ConnectionOptions): AdminClient {
  const context = contextOf(options);
  const token = options.token ?? context?.token ?? (process.env[tokenVariable] || undefined);
  if (token !== undefined) checkToken(token);
  if (context !== undefined) return connectTo(context, token, options);
  const admin = options.admin ?? (options.data === undefined ? adminOfEnvironment() : undefined);
  const authority = options.adminCa === undefined ? undefined : readAuthority(options.adminCa);
  if (admin === undefined) {
    const data = options.data ?? (process.env.FLEETPOST_DATA || './data');
    return new AdminClient({ ...readAdminFile(data, token), authority });
  }
  if (token === undefined) throw new OperatorError(`--admin needs a token: --token T, or ${tokenVariable}.`);
  if (!isAdminUrl(admin) || !URL.canParse(admin)) {
    throw new OperatorError('--admin must be a URL, like http://127.0.0.1:8444.');
  }
  return new AdminClient({ url: admin, token, authority });
}

/** @throws OperatorError */
function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`The certificates to trust cannot be read: ${(error as Error).message}.`);
  }
}

/** Connects to the server of a context. @throws OperatorError */
function connectTo(
  { address, ca }: Context,
  token: string | undefined,
  { context, adminCa }: ConnectionOptions,
): AdminClient {
  if (token === undefined) {
    const name = context === undefined ? 'This context' : `The context ${context}`;
    throw new OperatorError(`${name} has no token: give one by --token T, or ${tokenVariable}.`);
  }
  const file = adminCa ?? ca;
  const authority = file === undefined ? undefined : readAuthority(file);
  return new AdminClient({ url: address, token, authority });
}

/** @throws OperatorError if it cannot be sent. */
export function checkToken(token: string): void {
  if (/^[\x21-\x7e]+$/.test(token)) return;
  throw new OperatorError('The token is invalid: it must be printable ASCII without spaces.');
}

/** The URL in the environment, unless it is an address for the server. */
function adminOfEnvironment(): string | undefined {
  const text = process.env[adminVariable];
  return text !== undefined && isAdminUrl(text) ? text : undefined;
}

/** Reads DATA/admin.json, which `serve` writes when it starts. `otherToken` takes precedence over its token. */
function readAdminFile(data: string, otherToken: string | undefined): { url: string; token: string } {
  const file = join(data, 'admin.json');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
    }
    throw new OperatorError(
      `There is no ${file}: start the server first, or name it with --data DIR or --admin URL --token T.`,
    );
  }
  const { url, token } = parse(text);
  if (typeof url !== 'string' || !URL.canParse(url)) {
    throw new OperatorError(`${file} is damaged: restart the server, which writes it again.`);
  }
  if (otherToken !== undefined) return { url, token: otherToken };
  if (typeof token === 'string') return { url, token };
  throw new OperatorError(
    `The bootstrap token of this server is disabled (bootstrapToken): give an API token with --token or ${tokenVariable}.`,
  );
}

function parse(text: string): { url?: unknown; token?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { url?: unknown; token?: unknown };
  } catch {
    return {};
  }
}
