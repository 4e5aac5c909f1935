import { Command, InvalidArgumentError, type Option } from 'commander';
import { withConnectionOptions } from './connection.ts';

/**
 * A command whose options take one value each, unless they collect a list. Commander would silently replace the first
 * value by a second, and `device change --tag a --tag b --disable` would disable all of b.
 */
export class OnceCommand extends Command {
  override createCommand(name?: string): Command {
    return new OnceCommand(name);
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

/** Collects an option that may be repeated. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Adds a command that talks to a running server. */
export function clientCommand(group: Command, nameAndArguments: string, description: string): Command {
  return withConnectionOptions(group.command(nameAndArguments).description(description));
}

/** Adds a command that works within a fleet. */
export function fleetCommand(group: Command, nameAndArguments: string, description: string): Command {
  return clientCommand(group, nameAndArguments, description).requiredOption('--fleet <id>', 'the fleet');
}

/** Adds the option for retrying a command safely. */
export function withIdempotencyKey(command: Command): Command {
  return command.option(
    '--idempotency-key <uuid>',
    'a UUIDv7; repeating the command with it has no further effect',
  );
}

export function idempotencyKeyHeaders({ idempotencyKey }: { idempotencyKey?: string }): Headers {
  return new Headers(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey });
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
