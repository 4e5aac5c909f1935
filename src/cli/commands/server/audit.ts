import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { type Command, Option } from 'commander';
import type { AuditEntryDocument, AuditFilter } from '../../../contract/access/audit.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { clientCommand, type ListOptions, withListOptions } from '../../options.ts';
import { endWithReader, listText, print, writeOut } from '../../output.ts';

interface FilterOptions extends ConnectionOptions {
  fleet?: string;
  by?: string;
  about?: string;
  book?: NonNullable<AuditFilter['book']>;
  since?: string;
  until?: string;
}

function withFilter(command: Command): Command {
  return command
    .option('--fleet <id>', 'only this fleet')
    .option('--by <token_id>', 'only this token, or "bootstrap"')
    .option('--about <id>', 'only entries about this: the id of a device, the name of an action')
    .addOption(
      new Option('--book <book>', 'only changes, traffic of mail and claims, or refused requests').choices([
        'change',
        'traffic',
        'refused',
      ]),
    )
    .option(
      '--since <when>',
      'at this time or later: a time, or a duration ago like 24h or 7d',
      moment('back'),
    )
    .option('--until <when>', 'before this time, likewise', moment('back'));
}

function filterOf({ fleet, by, about, book, since, until }: FilterOptions) {
  return { fleet, token: by, about, book, from: since, to: until };
}

/** Repeats the times in absolute form: a duration means another time with each command, and a cursor needs the same. */
function times({ since, until }: FilterOptions): string {
  return `${since === undefined ? '' : ` --since ${since}`}${until === undefined ? '' : ` --until ${until}`}`;
}

/** Widths of columns, by which a row fits 120 characters of a terminal; elsewhere each is as wide as its text. */
const widths = { by: 12, what: 30, about: 28, refusal: 18 };

function cut(text: string, width: number): string {
  return process.stdout.isTTY && text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** Columns for people: who, what, about what, and how it ended. */
function rowOf({ time, by, method, route, about, status, error }: AuditEntryDocument) {
  // `devices/mail`: the rest is in `about`.
  const path = route.replace(/^\/admin\/v1\/(fleets\/:fleet_id\/)?/, '').replaceAll(/\/:\w+/g, '');
  const facts = Object.entries(about).map(([key, value]) => `${key}=${value}`);
  return {
    time: `${time.slice(0, 19)}Z`,
    by: cut(by.name || by.kind, widths.by),
    what: cut(`${method} ${path}`, widths.what),
    about: cut(facts.join(' '), widths.about),
    status,
    refusal: cut(error ?? '', widths.refusal),
  };
}

async function exportEntries({ out, ...options }: FilterOptions & { out?: string }): Promise<void> {
  const query = filterOf(options);
  const response = await connect(options).open('GET', pathTo('/audit:export', {}), { query });
  const body = Readable.fromWeb(response.body as ReadableStream);
  try {
    if (out === undefined || out === '-') {
      endWithReader();
      for await (const chunk of body) {
        await writeOut(chunk);
      }
      return;
    }
    await pipeline(body, createWriteStream(out, { mode: 0o600 }));
  } catch (error) {
    throw new OperatorError(`The export is incomplete: ${(error as Error).message}.`);
  }
  print(options, { file: out }, `Wrote the audit log to ${out}.`);
}

/** `audit list|export`. */
export function addAuditCommands(program: Command): void {
  const group = program.command('audit').description('see who changed what');

  withListOptions(
    withFilter(clientCommand(group, 'list', 'list changes and refused requests, newest first')),
  ).action(async (options: FilterOptions & ListOptions) => {
    const list = await connect(options).list(pathTo('/audit', {}), options, filterOf(options));
    const columns = ['time', 'by', 'what', 'about', 'status', 'refusal'] as const;
    const rows = { items: list.items.map(rowOf), next: list.next && `${list.next}${times(options)}` };
    print(options, list, listText(rows, columns, 'There are no such entries.'));
  });

  withFilter(clientCommand(group, 'export', 'write the audit log as NDJSON, oldest first'))
    .option('--out <file>', 'file to write, readable by its owner only; default, or -: standard output')
    .action(exportEntries);
}
