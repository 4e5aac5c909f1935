import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { type Command, Option } from 'commander';
import type { AuditEntryDocument, AuditFilter } from '../../../contract/access/audit.ts';
import { auditColumns } from '../../../contract/columns/access.ts';
import type { ListColumns } from '../../../contract/columns/column.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { clientCommand, type ListOptions, option, withListOptions } from '../../options.ts';
import { endWithReader, listText, print, writeOut } from '../../output.ts';
import { type OptionsOf, valuesOf, withOptions } from '../declared.ts';

interface FilterOptions extends ConnectionOptions {
  since?: string;
  until?: string;
}

const filter = {
  fleet: new Option('--fleet <id>', 'only this fleet'),
  token: new Option('--by <token_id>', 'only this token, or "bootstrap"'),
  about: new Option('--about <id>', 'only entries about this: the id of a device, the name of an action'),
  book: new Option('--book <book>', 'only changes, traffic of mail and claims, or refused requests').choices([
    'change',
    'traffic',
    'refused',
  ]),
  from: option(
    '--since <when>',
    'at this time or later: a time, or a duration ago like 24h or 7d',
    moment('back'),
  ),
  to: option('--until <when>', 'before this time, likewise', moment('back')),
} satisfies OptionsOf<AuditFilter>;

/** Repeats the times in absolute form: a duration means another time with each command, and a cursor needs the same. */
function times({ since, until }: FilterOptions): string {
  return `${since === undefined ? '' : ` --since ${since}`}${until === undefined ? '' : ` --until ${until}`}`;
}

/** Widths of columns, by which a row fits 120 characters of a terminal; elsewhere each is as wide as its text. */
const widths = { by: 12, what: 30, about: 28, refusal: 18 };

function cut(text: string, width: number): string {
  return process.stdout.isTTY && text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** The columns, in a terminal with their widths. */
const columns: ListColumns<AuditEntryDocument> = auditColumns.map((column) => {
  const { name } = column;
  if (name === 'time') return { name, value: ({ time }) => `${time.slice(0, 19)}Z` };
  if (!(name in widths) || !('value' in column)) return column;
  return { name, value: (entry) => cut(column.value(entry) ?? '', widths[name as keyof typeof widths]) };
});

async function exportEntries({ out, ...options }: FilterOptions & { out?: string }): Promise<void> {
  const query = valuesOf<AuditFilter>(filter, options);
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
    withOptions(clientCommand(group, 'list', 'list changes and refused requests, newest first'), filter),
  ).action(async (options: FilterOptions & ListOptions) => {
    const query = valuesOf<AuditFilter>(filter, options);
    const list = await connect(options).list(pathTo('/audit', {}), options, query);
    const next = list.next && `${list.next}${times(options)}`;
    print(options, list, listText({ items: list.items, next }, columns, 'There are no such entries.'));
  });

  withOptions(clientCommand(group, 'export', 'write the audit log as NDJSON, oldest first'), filter)
    .option('--out <file>', 'file to write, readable by its owner only; default, or -: standard output')
    .action(exportEntries);
}
