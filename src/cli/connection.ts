import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { tokenVariable } from '../core/config/token-variable.ts';
import { OperatorError } from '../core/errors.ts';
import { AdminClient } from './admin-client.ts';

/** Options of every client command. */
export interface ConnectionOptions {
  data: string;
  admin?: string;
  token?: string;
  json?: boolean;
}

export function withConnectionOptions(command: Command): Command {
  return command
    .option('--data <dir>', 'data folder of the running server', process.env.FLEETPOST_DATA ?? './data')
    .option('--admin <url>', 'URL of the admin API, instead of a data folder; needs a token')
    .option('--token <token>', `API token, instead of the one in the data folder; or set ${tokenVariable}`)
    .option('--json', 'print one JSON document');
}

/**
 * Connects to the server given by --admin, or else to the one of the data folder.
 * @throws OperatorError if the options do not lead to a server.
 */
export function connect({ data, admin, token: option }: ConnectionOptions): AdminClient {
  const token = option ?? (process.env[tokenVariable] || undefined);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new OperatorError('The token is invalid: it must be printable ASCII without spaces.');
  if (admin === undefined) return new AdminClient(readAdminFile(data, token));
  if (token === undefined) throw new OperatorError(`--admin needs a token: --token T, or ${tokenVariable}.`);
  if (!/^https?:\/\//.test(admin) || !URL.canParse(admin)) {
    throw new OperatorError('--admin must be a URL, like http://127.0.0.1:8444.');
  }
  return new AdminClient({ url: admin, token });
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
