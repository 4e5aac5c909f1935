import { Command, InvalidArgumentError, Option } from 'commander';
import { fleetVariable } from '../core/config/client-variables.ts';
import { suggestionFor } from '../core/config/suggestion.ts';
import { deviceIdPattern, fleetIdPattern, replaceKeyPattern } from '../core/identity.ts';
import { type ConnectionOptions, withConnectionOptions } from './connection.ts';
import { contextOf } from './contexts.ts';

/** A deletion that wants the name typed does not take a mere yes: whoever gives the wrong one is told the other. */
const confirmations: Readonly<Record<string, string>> = { '--yes': '--confirm', '--confirm': '--yes' };

function didYouMean(suggestion: string | undefined): string {
  return suggestion === undefined ? '' : `\n(Did you mean ${suggestion}?)`;
}

/**
 * A command that takes nothing silently. Its options take one value each, unless they collect a list: commander would
 * replace the first value by a second, and `device change --tag a --tag b --disable` would disable all of b. An unknown
 * option is named before a missing one, which most often is the same, mistyped.
 */
export class StrictCommand extends Command {
  constructor(name?: string) {
    super(name);
    // In place of commander's own, which suggests `verify` for `version`.
    this.on('command:*', ([word = '']: string[]) => {
      const suggestion = suggestionFor(
        word,
        this.commands.map((command) => command.name()),
      );
      this.error(`error: unknown command '${word}'${didYouMean(suggestion)}`, {
        code: 'commander.unknownCommand',
      });
    });
  }

  override createCommand(name?: string): Command {
    return new StrictCommand(name);
  }

  override parseOptions(argv: string[]): { operands: string[]; unknown: string[] } {
    const parsed = super.parseOptions(argv);
    const [first = ''] = parsed.unknown;
    const [flag = ''] = first.split('=');
    const isHelp = parsed.unknown.some((one) => one === '--help' || one === '-h');
    if (this.commands.length > 0 || !/^-./.test(flag) || isHelp) return parsed;
    const known = [...this.options.map(({ long }) => long ?? ''), '--help'];
    const confirmation = this.options.find(({ long }) => long !== undefined && long === confirmations[flag]);
    const suggestion = confirmation?.flags ?? suggestionFor(flag, known);
    return this.error(`error: unknown option '${flag}'${didYouMean(suggestion)}`, {
      code: 'commander.unknownOption',
    });
  }

  override addOption(option: Option): this {
    const takesValue = option.required || option.optional;
    // Registered before commander's own listener, which stores the value.
    if (takesValue) this.on(`option:${option.name()}`, () => this.#refuseSecond(option));
    return super.addOption(option);
  }

  #refuseSecond(option: Option): void {
    const name = option.attributeName();
    if (this.getOptionValueSource(name) !== 'cli' || Array.isArray(this.getOptionValue(name))) return;
    this.error(`error: option '${option.flags}' may be given only once`);
  }
}

/** Reads an option as a whole number within bounds. */
export function integerOption(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}.`);
  };
}

function matching(pattern: RegExp, words: string): (text: string) => string {
  return (text) => {
    if (pattern.test(text)) return text;
    throw new InvalidArgumentError(`It must be ${words}.`);
  };
}

/** Reads an option as the id of a fleet. */
export const fleetIdOption = matching(fleetIdPattern, '8 letters or digits');
/** Reads an option as the id of a device. */
export const deviceIdOption = matching(deviceIdPattern, '10 letters or digits');

/** Reads an option as the key of a mail that may be replaced. */
export const replaceKeyOption = matching(replaceKeyPattern, '1 to 64 letters, digits, _ or -');
export const replaceKeyHelp = 'replace the mail of this key that waits and was never fetched';

/** An option and, of one that is no text, how it is read. */
export function option<T>(
  flags: string,
  description: string,
  parse?: (text: string, before: T) => T,
): Option {
  const one = new Option(flags, description);
  return parse === undefined ? one : one.argParser(parse);
}

/** Collects an option that may be repeated. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Adds a command that talks to a running server. */
export function clientCommand(group: Command, nameAndArguments: string, description: string): Command {
  return withConnectionOptions(group.command(nameAndArguments).description(description));
}

/** Options of every command that works within a fleet. */
export interface FleetOptions extends ConnectionOptions {
  fleet: string;
}

/** Adds a command that works within a fleet. */
export function fleetCommand(group: Command, nameAndArguments: string, description: string): Command {
  return clientCommand(group, nameAndArguments, description)
    .option('--fleet <id>', `the fleet (required, or set ${fleetVariable})`, fleetIdOption)
    .hook('preAction', (command) => {
      if (command.getOptionValue('fleet') !== undefined) return;
      command.setOptionValueWithSource('fleet', defaultFleet(command), 'env');
    });
}

/** The fleet of a command that names none, which ends the command if there is no such fleet. */
export function defaultFleet(command: Command): string {
  const fleet = process.env[fleetVariable] || contextOf(command.opts())?.fleet;
  if (fleet === undefined) {
    return command.error(`error: required option '--fleet <id>' not specified; or set ${fleetVariable}`);
  }
  if (fleetIdPattern.test(fleet)) return fleet;
  return command.error(`error: ${fleetVariable} is invalid: it must be 8 letters or digits`);
}

/** Adds the option for retrying a command safely. */
export function withIdempotencyKey(command: Command): Command {
  return command.option(
    '--idempotency-key <uuid>',
    'a UUIDv7; repeating the command with it has no further effect',
  );
}

export function idempotencyKeyHeaders({
  idempotencyKey,
}: {
  idempotencyKey?: string;
}): Record<string, string> {
  return idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey };
}

export interface ListOptions {
  limit: number;
  after?: string;
}

export function withListOptions(command: Command, limitMax = 1_000_000): Command {
  return command
    .option('--limit <n>', 'maximum number of items', integerOption(1, limitMax), 100)
    .option('--after <cursor>', 'continue after the previous list: its "next"');
}
