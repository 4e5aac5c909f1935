import { Command, type Option } from 'commander';
import { withConnectionOptions } from '../../src/cli/connection.ts';
import { createWholeProgram } from '../../src/server/commands/command.ts';
import { code, type Lines, page, table } from './markdown.ts';

const connectionOptions = withConnectionOptions(new Command()).options;
const connectionFlags = connectionOptions.map(({ flags }) => flags);

function optionRow({ flags, description, mandatory, defaultValue, argChoices }: Option): string[] {
  const choices = argChoices === undefined ? '' : ` (${argChoices.join(', ')})`;
  const isSaid = defaultValue === undefined || defaultValue === false || Array.isArray(defaultValue);
  const value = isSaid ? '' : ` (default: ${defaultValue})`;
  return [code(flags), `${description}${choices}${value}${mandatory ? ' (required)' : ''}`];
}

/** The words of a command after `fleetpost`. */
const wordsOf = (command: Command, path: readonly string[]): string => [...path, command.name()].join(' ');

function argumentsOf({ registeredArguments }: Command): string {
  return registeredArguments
    .map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return argument.required ? ` <${name}>` : ` [${name}]`;
    })
    .join('');
}

/** A command that does something, with its words. */
interface Leaf {
  words: string;
  command: Command;
}

function leavesOf(command: Command, path: readonly string[] = []): Leaf[] {
  const words = wordsOf(command, path);
  if (command.commands.length === 0) return [{ words, command }];
  return command.commands.flatMap((one) => leavesOf(one, [...path, command.name()]));
}

function describe({ words, command }: Leaf): Lines {
  const isClient = connectionFlags.every((flags) => command.options.some((option) => option.flags === flags));
  const own = isClient
    ? command.options.filter(({ flags }) => !connectionFlags.includes(flags))
    : command.options;
  const connection = isClient
    ? ['Takes also [where the server is](../commands.md#where-the-server-is).', '']
    : [];
  return [
    `## ${words}`,
    '',
    `${code(`fleetpost ${words}${argumentsOf(command)}`)}: ${command.description()}.`,
    '',
    ...table(['Option', 'What it does'], own.map(optionRow)),
    ...connection,
  ];
}

/** Names a page of commands: after a noun, or after what the commands without one are about. */
function pageNameOf(command: Command): string {
  return command.commands.length > 0 ? command.name() : 'single';
}

const introduction: Lines = [
  '`fleetpost COMMAND --help` prints the same, and `fleetpost completion SHELL` what a shell completes with:',
  '`source <(fleetpost completion bash)`.',
  '',
  '- `--json` prints one document on stdout, lists as `{"items": […], "next": CURSOR or null}`.',
  '- A time is ISO 8601 or a duration from now, `90s`, `15m`, `12h`, `7d`: back for what was, ahead for what will be. A',
  '  length of time is seconds or a duration.',
  '- `--payload` takes JSON, `@FILE`, or `-` for standard input; `--out -` writes to standard output. No export and no',
  '  import replaces a file.',
  '- What changes many things at once asks on a terminal, with their number and the first ten; elsewhere it needs `--yes`.',
  '  `--dry-run` prints the same and changes nothing.',
  '- An option that takes one value is refused when it is given twice.',
  '',
];

/** Every command: an index, and a page for each noun. */
export function commandPages(): Map<string, string> {
  const program = createWholeProgram();
  const names = [...new Set(program.commands.map(pageNameOf))].sort();
  const index = [...introduction];
  const pages = new Map<string, string>();
  for (const name of names) {
    const commands = program.commands.filter((command) => pageNameOf(command) === name);
    const leaves = commands.flatMap((command) => leavesOf(command));
    const title = name === 'single' ? 'Commands of one word' : `fleetpost ${name}`;
    const reader = 'operators: commands, their arguments and options.';
    pages.set(`commands/${name}.md`, page(title, reader, leaves.flatMap(describe)));
    index.push(`## [${name === 'single' ? 'One word' : name}](commands/${name}.md)`, '');
    index.push(
      ...table(
        ['Command', 'What it does'],
        leaves.map(({ words, command }) => [code(words), command.description()]),
      ),
    );
  }
  index.push('## Where the server is', '', 'Commands that talk to a running server take:', '');
  index.push(...table(['Option', 'What it does'], connectionOptions.map(optionRow)));
  index.push('[Access](../run/access.md#contexts) says which of them wins.');
  pages.set('commands.md', page('Commands', 'operators: every command of `fleetpost`.', index));
  return pages;
}
