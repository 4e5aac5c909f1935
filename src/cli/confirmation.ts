import { createInterface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import type { ListDocument } from '../contract/document.ts';
import { OperatorError } from '../core/errors.ts';
import { print, printable } from './output.ts';

/** Options of a command that changes many things at once. */
export interface BulkOptions {
  json?: boolean;
  dryRun?: boolean;
  yes?: boolean;
}

/** The change that a bulk command is about to make. */
export interface Selection {
  count: number;
  /** The first of them, in words. */
  first: readonly string[];
}

/** Streams to ask a question on. */
export interface Terminal {
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  output: NodeJS.WritableStream & { isTTY?: boolean };
}

const terminalOfProcess: Terminal = { input: process.stdin, output: process.stderr };

/** True if there is somebody to ask. */
export function canAsk({ input, output }: Terminal = terminalOfProcess): boolean {
  return input.isTTY === true && output.isTTY === true;
}

/** Asks a question; at the end of the input, where nobody will answer, the answer is empty. */
export async function ask(question: string, terminal: Terminal = terminalOfProcess): Promise<string> {
  const lines = createInterface(terminal);
  const answer = await Promise.race([
    lines.question(question),
    new Promise<string>((resolve) => lines.once('close', () => resolve(''))),
  ]).finally(() => lines.close());
  return answer.trim();
}

const firstMax = 10;

/** Adds the options by which a bulk command is tried and confirmed. */
export function withConfirmation(command: Command): Command {
  return command
    .option('--dry-run', 'print how many it would change, and the first ten; change nothing')
    .addOption(new Option('--yes', 'do not ask; needed where there is no terminal').conflicts('dryRun'));
}

/**
 * Resolves to true if a bulk command is to act: `--yes` says so, or else the answer on a terminal. `deed` is a verb and
 * its object, like "disable devices".
 * @throws OperatorError if the answer is no, or nobody can be asked.
 */
export async function isConfirmed(
  [verb, objects]: readonly [verb: string, objects: string],
  options: BulkOptions,
  select: () => Promise<Selection>,
  terminal: Terminal = terminalOfProcess,
): Promise<boolean> {
  if (options.yes) return true;
  if (!options.dryRun && !canAsk(terminal)) {
    throw new OperatorError(
      `This would ${verb} ${objects}: confirm it with --yes, or see which with --dry-run.`,
    );
  }
  const { count, first } = await select();
  const listed = first.slice(0, firstMax);
  const names = `${listed.map(printable).join(', ')}${count > listed.length ? ', …' : ''}`;
  const deed = `${verb} ${count} ${objects}${count === 0 ? '' : `: ${names}`}`;
  if (options.dryRun) {
    print(options, { dry_run: true, count, first: listed }, `Would ${deed}.`);
    return false;
  }
  if (/^y(es)?$/i.test(await ask(`This will ${deed}.\nContinue? [y/N] `, terminal))) return true;
  throw new OperatorError('Not confirmed; nothing was changed.');
}

/** Selects what a list of the admin API names. */
export async function selectListed<T>(
  pages: AsyncIterable<ListDocument<T>>,
  nameOf: (item: T) => string,
): Promise<Selection> {
  let count = 0;
  const first: string[] = [];
  for await (const { items } of pages) {
    count += items.length;
    first.push(...items.slice(0, firstMax - first.length).map(nameOf));
  }
  return { count, first };
}
