import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { explainMissing, glibc } from '../../src/device-api/uws/uws-installation.ts';
import { folderOnDisk } from '../harness/temporary-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const minutesMs = 300_000;
/** A checkout of its own with what an operator installs. */
const checkout = folderOnDisk();
/** Folder of Node itself, which the registry has as a package. */
const nodes = folderOnDisk();
const versions = ['16.20.2', '18.20.8', '22.23.3', '24.21.0', '26.10.0'];
afterAll(() => {
  for (const folder of [checkout, nodes]) rmSync(folder, { recursive: true });
});

interface Result {
  status: number | null;
  output: string;
}

async function run(file: string, args: readonly string[], cwd = checkout): Promise<Result> {
  // The prefix that `npm run` passes to its children is not true of npm in another folder.
  const { npm_config_local_prefix: _, ...env } = process.env;
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [status] = await once(child, 'close');
  return { status, output };
}

/** `fleetpost serve` by that Node, on a folder that it never makes. */
function serve(node: string): Promise<Result> {
  return run(node, ['dist/main.js', 'serve', '--data', 'never', '--listen', '127.0.0.1:0']);
}

function nodeOf(version: string): string {
  return join(nodes, 'node_modules', `node-${version}`, 'bin', 'node');
}

beforeAll(async () => {
  for (const name of [
    '.npmrc',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'src',
    'clients',
    'packaging',
  ])
    cpSync(join(root, name), join(checkout, name), { recursive: true });
  const aliases = versions.map((version) => `node-${version}@npm:node@${version}`);
  const installed = await run('npm', ['install', '--no-save', '--prefix', nodes, ...aliases], nodes);
  expect(installed, installed.output).toMatchObject({ status: 0 });
}, minutesMs);

it(
  'npm ci --omit=dev installs and builds all that the server needs',
  async () => {
    const { status, output } = await run('npm', ['ci', '--omit=dev']);
    expect(status, output).toBe(0);
    expect(readdirSync(join(checkout, 'node_modules'))).not.toContain('vitest');
    expect(await run(process.execPath, ['dist/main.js', 'config'])).toMatchObject({ status: 0 });
  },
  minutesMs,
);

it.each(['16.20.2', '18.20.8'])('Node %s is told which Node is needed', async (version) => {
  const output = `fleetpost: Node 20.19 or newer is needed; this is Node ${version}.\n`;
  expect(await serve(nodeOf(version))).toEqual({ status: 1, output });
});

const major = (version: string): string => version.split('.')[0] ?? '';
const others = ['22.23.3', '24.21.0', '26.10.0'].filter((one) => major(one) !== major(process.versions.node));

it.each(others)(
  'Node %s is told what it lacks where the modules were installed for another',
  async (version) => {
    const sentence = explainMissing(`${process.platform}-${process.arch}`, version, glibc());
    expect(sentence).toMatch(
      / run npm ci again with this one\.$|needs glibc 2\.38 or newer; this machine has /,
    );
    expect(await serve(nodeOf(version))).toEqual({ status: 1, output: `fleetpost: ${sentence}\n` });
  },
);

it(
  'a build leaves every file in its place at any moment, and those that are the same alone',
  async () => {
    const file = (name: string): string => join(checkout, 'dist', name);
    const before = statSync(file('chunks/supervisor.js')).ino;
    appendFileSync(join(checkout, 'src/threads/worker.ts'), '\nexport const isChanged = true;\n');
    writeFileSync(file('threads/gone.js'), '');
    let isOver = false;
    const built = run('npm', ['run', 'build']).finally(() => {
      isOver = true;
    });
    for (; !isOver; await wait(1)) expect(readFileSync(file('threads/worker.js')).length).toBeGreaterThan(0);
    expect(await built).toMatchObject({ status: 0 });
    expect(readFileSync(file('threads/worker.js'), 'utf8')).toContain('isChanged');
    expect(readdirSync(file('threads'))).not.toContain('gone.js');
    expect(statSync(file('chunks/supervisor.js')).ino).toBe(before);
    expect(readdirSync(checkout).filter((name) => name.startsWith('dist'))).toEqual(['dist']);
  },
  minutesMs,
);

it('an HTTP library whose digest is another than the known one is not loaded', async () => {
  const folder = join(checkout, 'node_modules', '@uwsjs');
  for (const name of readdirSync(folder)) appendFileSync(join(folder, name, 'uws.node'), 'x');
  const { status, output } = await serve(process.execPath);
  expect(status).toBe(1);
  expect(output).toMatch(/^fleetpost: \/\S+uws\.node is not loaded: its SHA-256 is [0-9a-f]{64}, not /);
});
