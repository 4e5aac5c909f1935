import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { createProgram } from '../src/cli/program.ts';
import { runErrorCode } from '../src/contract/action-run.ts';
import { deviceErrors } from '../src/core/errors.ts';
import { routeNames } from '../src/device-api/server/server.ts';
import { addConfigCommand } from '../src/server/commands/command.ts';
import { addCopyCommand } from '../src/server/commands/copy-command.ts';
import { addMigrateCommand } from '../src/server/commands/migrate-command.ts';
import { addRebalanceCommand } from '../src/server/commands/rebalance-command.ts';
import { addServeCommand } from '../src/server/commands/serve-command.ts';
import { addRestoreCommand, addVerifyCommand } from '../src/server/commands/verify-command.ts';
import {
  configDefault,
  configDescription,
  configKeys,
  isReloadable,
} from '../src/server/configuration/config.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** The rows of the table that begins with this heading, as cells. */
function table(heading: string): string[][] {
  const start = readme.indexOf(`\n| ${heading} |`);
  expect(start, `no table "${heading}"`).toBeGreaterThan(0);
  const lines = readme.slice(start + 1).split('\n');
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(2, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

it('the configuration table is the configuration', () => {
  expect(table('Key')).toEqual(
    configKeys.map((key) => [
      `\`${key}\``,
      key === 'shards' ? 'number of cores' : `\`${JSON.stringify(configDefault(key))}\``,
      configDescription(key),
    ]),
  );
});

it('the keys that SIGHUP can change are named', () => {
  const [, sentence = ''] = /These can change: ([^.]*)\./.exec(readme) ?? [];
  expect(sentence.match(/\w+/g)).toEqual(configKeys.filter(isReloadable));
});

it('the errors table is the catalogue (D7)', () => {
  expect(table('Code')).toEqual(
    Object.entries(deviceErrors).map(([code, { status, msg }]) => [`\`${code}\``, String(status), msg]),
  );
});

it('the table of what a run can end with is what it can', () => {
  const codes = table('Error of a run').flatMap(([cell]) => cell?.match(/\w+/g) ?? []);
  expect(codes.sort()).toEqual([...runErrorCode.enum].sort());
});

it('the device API table is the routes', () => {
  const documented = table('Request').map(([request]) => request?.replaceAll('`', ''));
  expect(documented.sort()).toEqual(routeNames.filter((name) => name !== 'unknown').sort());
});

it('the commands table is the commands', () => {
  const program = createProgram();
  addServeCommand(program);
  addConfigCommand(program);
  addCopyCommand(program);
  addMigrateCommand(program);
  addRebalanceCommand(program);
  addRestoreCommand(program);
  addVerifyCommand(program);
  const namesUnder = (command: Command): string[] =>
    command.commands.length === 0
      ? [command.name()]
      : command.commands.flatMap(namesUnder).map((name) => `${command.name()} ${name}`);
  const names = program.commands.flatMap(namesUnder);
  expect(
    table('Command')
      .map(([name]) => name?.replaceAll('`', ''))
      .sort(),
  ).toEqual(names.sort());
});
