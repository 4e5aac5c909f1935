import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { Command } from 'commander';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { clientCommand, type ListOptions, withListOptions } from '../../options.ts';
import { listText, print } from '../../output.ts';

interface Entry {
  entry: number;
  time: string;
  by: { kind: string; id: string | null; name: string | null };
  method: string;
  route: string;
  about: Record<string, string | number>;
  status: number | null;
  error: string | null;
  address: string | null;
  forwarded_for: string | null;
}

interface FilterOptions extends ConnectionOptions {
  fleet?: string;
  by?: string;
  from?: string;
  to?: string;
}

function withFilter(command: Command): Command {
  return command
    .option('--fleet <id>', 'of this fleet alone')
    .option('--by <token_id>', 'by this token alone, or "bootstrap"')
    .option('--from <when>', 'from this time on; or so long ago, 24h or 7d say', moment('back'))
    .option('--to <when>', 'before this time', moment('back'));
}

function wantedOf({ fleet, by, from, to }: FilterOptions): Record<string, string> {
  const wanted = Object.entries({ fleet, token: by, from, to });
  return Object.fromEntries(wanted.filter((one): one is [string, string] => one[1] !== undefined));
}

/** A length of time is another time with each command, and a cursor goes with the times that it was made for. */
function times({ from, to }: FilterOptions): string {
  return `${from === undefined ? '' : ` --from ${from}`}${to === undefined ? '' : ` --to ${to}`}`;
}

/** What people ask first: who, what, about what, and how it ended. */
function rowOf(entry: Entry) {
  const { by, method, route, about, status, error, address, forwarded_for: forwarded } = entry;
  return {
    entry: entry.entry,
    time: entry.time,
    by: by.name || by.kind,
    what: `${method} ${route.replace('/admin/v1', '')}`,
    about: Object.entries(about).map(([key, value]) => `${key}=${value}`),
    outcome: error ?? status ?? 'unknown',
    from: forwarded === null ? address : `${address} for ${forwarded}`,
  };
}

async function exportEntries({ out, ...options }: FilterOptions & { out?: string }): Promise<void> {
  const query = new URLSearchParams(wantedOf(options));
  const response = await connect(options).open('GET', `/audit:export?${query}`);
  const body = Readable.fromWeb(response.body as ReadableStream);
  try {
    if (out === undefined) {
      for await (const chunk of body) {
        if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
      }
      return;
    }
    await pipeline(body, createWriteStream(out, { mode: 0o600 }));
  } catch (error) {
    throw new OperatorError(`The export is not whole: ${(error as Error).message}.`);
  }
  print(options, { file: out }, `The audit log is in ${out}.`);
}

/** `audit list|export`. */
export function addAuditCommands(program: Command): void {
  const group = program.command('audit').description('see who did what');

  withListOptions(
    withFilter(clientCommand(group, 'list', 'list changes and refused requests, newest first')),
  ).action(async (options: FilterOptions & ListOptions) => {
    const list = await connect(options).list<Entry>('/audit', options, wantedOf(options));
    const columns = ['entry', 'time', 'by', 'what', 'about', 'outcome', 'from'] as const;
    const rows = { items: list.items.map(rowOf), next: list.next && `${list.next}${times(options)}` };
    print(options, list, listText(rows, columns, 'There is nothing of that.'));
  });

  withFilter(clientCommand(group, 'export', 'write the audit log as NDJSON, oldest first'))
    .option('--out <file>', 'a file, for its owner only; without it, standard output')
    .action(exportEntries);
}
