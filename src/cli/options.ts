import { Command, InvalidArgumentError, type Option } from 'commander';
import { withConnectionOptions } from './connection.ts';

/**
 * A command whose options take one value each, unless they collect them into a list: commander would let a second value
 * replace the first without a word, and `device change --tag a --tag b --disable` disable all of b.
 */
export class OnceCommand extends Command {
  override createCommand(name?: string): Command {
    return new OnceCommand(name);
  }

  override addOption(option: Option): this {
    const takesValue = option.required || option.optional;
    // Before commander's own listener, which stores the value.
    if (takesValue) this.on(`option:${option.name()}`, () => this.#refuseSecond(option));
    return super.addOption(option);
  }

  #refuseSecond(option: Option): void {
    const name = option.attributeName();
    if (this.getOptionValueSource(name) !== 'cli' || Array.isArray(this.getOptionValue(name))) return;
    this.error(`error: option '${option.flags}' can be given once`);
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

/** Collects an option that may be given several times. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** A command that talks to a running server. */
export function clientCommand(group: Command, nameAndArguments: string, description: string): Command {
  return withConnectionOptions(group.command(nameAndArguments).description(description));
}

/** One that works within a fleet. */
export function fleetCommand(group: Command, nameAndArguments: string, description: string): Command {
  return clientCommand(group, nameAndArguments, description).requiredOption('--fleet <id>', 'the fleet');
}

/** Of commands that may be repeated without doing it twice. */
export function withIdempotencyKey(command: Command): Command {
  return command.option('--idempotency-key <uuid>', 'a UUIDv7: the same command again does nothing more');
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
    .option('--limit <n>', 'items at most', integerOption(1, limitMax), 100)
    .option('--after <cursor>', '"next" of the list before');
}
