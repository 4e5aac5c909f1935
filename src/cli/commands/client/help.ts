import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { Argument, type Command } from 'commander';
import { suggestionFor } from '../../../core/config/suggestion.ts';
import { OperatorError } from '../../../core/errors.ts';
import { endWithReader } from '../../output.ts';

/** The documents, which every package has beside the code. */
const documents = new URL('../../../../docs/', import.meta.url);
/** Their folders, in the order of a reader; where two pages have the same name, it stands for the first. */
const folders = ['start', 'devices', 'operate', 'actions', 'run', 'reference', 'internals'];

/** The pages, by their paths without the ending: `run/storage`. */
function pages(): string[] {
  if (!existsSync(documents)) return [];
  const names = readdirSync(documents, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .sort();
  return folders.flatMap((folder) => names.filter((name) => name.startsWith(`${folder}/`)));
}

/** The page of each topic: its name, or its path where the name is that of another page or of a command. */
function topicsOf(program: Command): Map<string, string> {
  const taken = new Set(program.commands.map((command) => command.name()));
  const topics = new Map<string, string>();
  for (const page of pages()) {
    const name = basename(page);
    const isPart = page.split('/').length > 2;
    topics.set(isPart || taken.has(name) || topics.has(name) ? page : name, page);
  }
  return topics;
}

/** The topics by folder, without the parts of larger pages. */
function topicList(program: Command, of: readonly string[] = folders): string {
  const width = Math.max(...folders.map((folder) => folder.length));
  const topics = [...topicsOf(program)].filter(([, page]) => page.split('/').length === 2);
  const lines = of.flatMap((folder) => {
    const own = topics.filter(([, page]) => page.startsWith(`${folder}/`)).map(([topic]) => topic);
    return own.length === 0 ? [] : [`  ${folder.padEnd(width)}  ${own.join(', ')}\n`];
  });
  return lines.length === 0 ? '' : `\nTopics of fleetpost help:\n${lines.join('')}`;
}

function commandAt(program: Command, words: readonly string[]): Command | undefined {
  let command: Command | undefined = program;
  for (const word of words) command = command?.commands.find((one) => one.name() === word);
  return command;
}

/** Prints the help of a command, and the topic of the page that has its name. */
function printCommand(program: Command, command: Command): void {
  command.outputHelp();
  const [topic] = [...topicsOf(program).keys()].filter((one) => one.split('/')[1] === command.name());
  if (command.parent === program && topic !== undefined) {
    process.stdout.write(`\nMore: fleetpost help ${topic}\n`);
  }
}

function printPage(page: string): void {
  const text = readFileSync(new URL(`${page}.md`, documents), 'utf8');
  endWithReader();
  process.stdout.write(text.replace(/^<!--.*-->\n\n/gm, ''));
}

/** The error for what is neither a command nor a topic, with what may have been meant. */
function unknownTopic(program: Command, words: readonly string[]): OperatorError {
  const group = commandAt(program, words.slice(0, -1)) ?? program;
  const before = group === program ? [] : words.slice(0, -1);
  const commands = group.commands.map((one) => [...before, one.name()].join(' '));
  const name = words.join(' ');
  const suggestion = suggestionFor(name, [...commands, ...topicsOf(program).keys()]);
  const next = suggestion === undefined ? 'See fleetpost help.' : `Did you mean ${suggestion}?`;
  return new OperatorError(`There is no command or topic "${name}". ${next}`);
}

/** Prints the help of a command, or else a page of the documents. @throws OperatorError if there is neither. */
function printHelp(program: Command, words: readonly string[]): void {
  const command = commandAt(program, words);
  const [word = ''] = words.length === 1 ? words : [];
  // As a page links to another one: ../run/service.md#certificates.
  const name = word
    .replace(/#.*$/, '')
    .replace(/\.md$/, '')
    .replace(/^(\.{0,2}\/)+/, '')
    .replace(/^docs\//, '');
  const page = topicsOf(program).get(name) ?? pages().find((one) => one === name);
  if (command !== undefined) printCommand(program, command);
  else if (page !== undefined) printPage(page);
  else if (folders.includes(name)) process.stdout.write(topicList(program, [name]));
  else throw unknownTopic(program, words);
}

/** Adds `help`, which offers the commands added before it, and lists the topics below the commands. */
export function addHelpCommand(program: Command): void {
  const words = [...program.commands.map((command) => command.name()), ...topicsOf(program).keys()];
  // For completion alone: the words may also be those of a command in a group.
  const argument = new Argument('[words...]', 'a command or a topic').choices(words);
  argument.argParser((word: string, before: readonly string[] = []) => [...before, word]);
  program
    .command('help')
    .description('print the help of a command, or a page of the documents')
    .addArgument(argument)
    .configureHelp({ argumentDescription: ({ description }) => description })
    .action((asked: readonly string[] = []) => printHelp(program, asked));
  program.addHelpText('after', () => topicList(program));
}
