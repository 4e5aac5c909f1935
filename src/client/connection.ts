import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { OperatorError } from '../core/errors.ts';
import { AdminClient } from './admin-client.ts';

/** The options that every client command takes. */
export interface ConnectionOptions {
  data: string;
  admin?: string;
  token?: string;
  json?: boolean;
}

export function withConnectionOptions(command: Command): Command {
  return command
    .option('--data <dir>', 'data folder of the running server', process.env.FLEETPOST_DATA ?? './data')
    .option('--admin <url>', 'admin API, instead of a data folder; needs --token')
    .option('--token <token>', 'bearer token of that admin API')
    .option('--json', 'print one JSON document');
}

/**
 * The server that the options name, or else the one whose data folder they name.
 * @throws OperatorError when they do not lead to a server.
 */
export function connect({ data, admin, token }: ConnectionOptions): AdminClient {
  if (admin === undefined && token === undefined) return new AdminClient(readAdminFile(data));
  if (admin === undefined || token === undefined) {
    throw new OperatorError('--admin and --token go together.');
  }
  if (!/^https?:\/\//.test(admin) || !URL.canParse(admin)) {
    throw new OperatorError('--admin is a URL, like http://127.0.0.1:8444.');
  }
  return new AdminClient({ url: admin, token });
}

/** DATA/admin.json, which `serve` writes at its start. */
function readAdminFile(data: string): { url: string; token: string } {
  const file = join(data, 'admin.json');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
    }
    throw new OperatorError(
      `There is no ${file}: start the server first, or say where it is with --data DIR or --admin URL --token T.`,
    );
  }
  try {
    const { url, token } = JSON.parse(text) as { url?: unknown; token?: unknown };
    if (typeof url === 'string' && URL.canParse(url) && typeof token === 'string') return { url, token };
  } catch {
    // Said below, with everything else that is not what the server writes.
  }
  throw new OperatorError(`${file} is damaged: restart the server, which writes it anew.`);
}
