import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import type { ServerDocument } from '../../../contract/server.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand } from '../../options.ts';
import { fields, print, table } from '../../output.ts';

function serverText({ certificates, configuration, ...server }: ServerDocument, isAll: boolean): string {
  const shown = configuration.filter(({ source, pending }) => isAll || pending || source !== 'default');
  const rows = shown.map(({ key, value, source, pending }) => [
    key,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
    pending ? `${source}; another value waits for a restart` : source,
  ]);
  const ends = certificates.map(({ listener, expires_at }) => [`certificate, ${listener}`, expires_at]);
  return [
    fields({ ...server, ...Object.fromEntries(ends) }),
    rows.length === 0 ? 'All values are defaults.' : table(['key', 'value', 'source'], rows),
  ].join('\n\n');
}

/** `status`. */
export function addStatusCommand(program: Command): void {
  clientCommand(program, 'status', 'show the running server: version, certificates, configuration')
    .option('--all', 'keys with their default value too')
    .action(async ({ all = false, ...options }: ConnectionOptions & { all?: boolean }) => {
      const server = await connect(options).request('GET', pathTo('/server', {}));
      print(options, server, serverText(server, all));
    });
}
