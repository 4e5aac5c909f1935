import type { Command, Option } from 'commander';
import { expect, it } from 'vitest';
import { createWholeProgram } from '../../src/server/commands/command.ts';

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

/** Samples of every kind of value that an option may take. */
const samples = [
  '1',
  '2',
  '1h',
  '2h',
  '65536',
  '65537',
  'read',
  'mail',
  'datapoint:a',
  'message:b',
  'postgres://a',
  'postgres://b',
  'FLEET001',
  'FLEET002',
  'DEVICE0001',
  'DEVICE0002',
  'https://a.example',
  'https://b.example',
];

/** Two values that the option takes. */
function twoValuesFor({ argChoices, parseArg, flags }: Option): [string, string] {
  const taken = (argChoices ?? samples).filter((text) => {
    try {
      parseArg?.(text, undefined as never);
      return true;
    } catch {
      return false;
    }
  });
  const [first, second] = taken;
  if (first === undefined || second === undefined) throw new Error(`no sample values for ${flags}`);
  return [first, second];
}

/** Tells how an option that is given twice is handled. */
function twice(command: Command, option: Option): 'refused' | 'collected' | 'replaced' {
  const [first, second] = twoValuesFor(option);
  const name = option.attributeName();
  command.exitOverride().configureOutput({ outputError: () => {} });
  command.parseOptions([String(option.long), first]);
  const alone: unknown = command.getOptionValue(name);
  try {
    command.parseOptions([`${option.long}=${second}`]);
  } catch (error) {
    return (error as Error).message === `error: option '${option.flags}' may be given only once`
      ? 'refused'
      : 'replaced';
  }
  const both: unknown = command.getOptionValue(name);
  return Array.isArray(alone) && Array.isArray(both) && both.length === 2 && both[0] === alone[0]
    ? 'collected'
    : 'replaced';
}

it('an option that is given twice counts twice, or is refused: every option of every command', () => {
  const found: Record<ReturnType<typeof twice>, string[]> = { refused: [], collected: [], replaced: [] };
  for (const command of commandsOf(createWholeProgram())) {
    for (const option of command.options) {
      if (!option.required && !option.optional) continue;
      const path = `${command.parent?.name()} ${command.name()} ${option.long}`;
      found[twice(command, option)].push(path);
    }
  }
  expect(found.replaced).toEqual([]);
  expect(found.refused).toEqual(
    expect.arrayContaining(['fleetpost serve --listen', 'mail send --device', 'device change --state']),
  );
  expect(found.collected).toEqual(
    expect.arrayContaining([
      'device change --device',
      'mail broadcast --tag',
      'dead-letter drop --reason',
      'action logs --device',
      'fleetpost copy --from',
      'token create --scopes',
    ]),
  );
  expect(found.refused.length + found.collected.length).toBeGreaterThan(400);
});
