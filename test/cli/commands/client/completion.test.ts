import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { execute, fleetpostProcess } from '../../../harness/server/command.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';

/** Completions that bash offers at the end of each line. */
async function completionsOf(script: string, lines: readonly string[][]): Promise<string[][]> {
  const file = join(temporaryFolder(), 'completion.bash');
  const calls = lines.map(
    (words) =>
      `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _fleetpost; echo "\${COMPREPLY[*]}"`,
  );
  writeFileSync(file, `${script}\n${calls.join('\n')}\n`);
  const { status, stdout, stderr } = await execute('bash', [file]);
  expect([status, stderr]).toEqual([0, '']);
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter((word) => word !== ''));
}

it('bash completes commands, options and their choices', async () => {
  const { stdout } = await fleetpostProcess(['completion', 'bash']);
  const [top, groups, options, choices, value, after] = await completionsOf(stdout, [
    ['fleetpost', ''],
    ['fleetpost', 'devi'],
    ['fleetpost', 'device', 'change', '--se'],
    ['fleetpost', 'device', 'list', '--state', ''],
    ['fleetpost', 'export', '--out', ''],
    ['fleetpost', 'device', 'list', '--fleet', 'GARDEN01', '--seen-b'],
  ]);
  expect(top).toEqual(expect.arrayContaining(['serve', 'device', 'context', 'completion', '--help']));
  expect(groups).toEqual(['device']);
  expect(options).toEqual(['--seen-after', '--seen-before']);
  expect(choices).toEqual(['connected', 'active', 'offline']);
  expect(value).toEqual([]);
  expect(after).toEqual(['--seen-before']);
});

it('zsh and fish have what bash has', async () => {
  for (const [shell, option] of [
    ['zsh', '--seen-before'],
    ['fish', '-l seen-before'],
  ] as const) {
    const { status, stdout } = await fleetpostProcess(['completion', shell]);
    expect(status).toBe(0);
    expect(stdout).toContain(option);
    expect(stdout).toContain('broadcast');
  }
  expect(await fleetpostProcess(['completion', 'tcsh'])).toMatchObject({ status: 1, stdout: '' });
});
