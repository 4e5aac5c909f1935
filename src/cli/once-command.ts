import { Command, type Option } from 'commander';

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
