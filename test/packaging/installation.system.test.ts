/** Installation from a clone and from the npm package. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { explainMissing, glibc } from '../../src/device-api/uws/uws-installation.ts';
import { folderOnDisk } from '../harness/machine/temporary-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const minutesMs = 300_000;
/** A checkout of its own, with what the container is built from. */
const checkout = folderOnDisk();
/** Folder that has the npm package and nothing else. */
const installed = folderOnDisk();
/** Folder of Node itself, which the registry has as a package. */
const nodes = folderOnDisk();
const major = (version: string): string => version.split('.')[0] ?? '';
/** One that is too old, which must be able to read what says so, and those that the modules here are not for. */
const tooOld = '16.20.2';
const others = ['22.23.3', '24.21.0', '26.10.0'].filter((one) => major(one) !== major(process.versions.node));
afterAll(() => {
  for (const folder of [checkout, installed, nodes]) rmSync(folder, { recursive: true });
});

interface Result {
  status: number | null;
  output: string;
}

async function run(file: string, args: readonly string[], cwd = checkout): Promise<Result> {
  // What `npm run` passes to its children, of this folder and its .npmrc, is not true of npm in another one.
  const { npm_config_local_prefix: _prefix, npm_config_engine_strict: _strict, ...own } = process.env;
  // What `npm ci` has brought here is asked for nowhere else.
  const env = {
    ...own,
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
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

/** @throws AssertionError with what it printed, unless it ends with 0. */
async function runWell(file: string, args: readonly string[], cwd = checkout): Promise<void> {
  const { status, output } = await run(file, args, cwd);
  expect(status, output).toBe(0);
}

function expectNoBuilders(folder: string): void {
  const isThere = (name: string): boolean => existsSync(join(folder, 'node_modules', name));
  expect(isThere('fastify')).toBe(true);
  expect(['esbuild', 'preact', '@codemirror/view', '@types/node', 'vitest'].filter(isThere)).toEqual([]);
}

/** `fleetpost serve` by that Node, on a folder that it never makes. */
function serve(node: string): Promise<Result> {
  return run(node, ['dist/main.js', 'serve', '--data', 'never', '--listen', '127.0.0.1:0']);
}

function nodeOf(version: string): string {
  return join(nodes, 'node_modules', `node-${version}`, 'bin', 'node');
}

beforeAll(async () => {
  const [build = ''] = readFileSync(join(root, 'packaging/container/Containerfile'), 'utf8').split(/^USER/m);
  for (const [, paths = ''] of build.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const path of paths.split(' ')) {
      const name = path.replace(/\/\*\.js$/, '');
      cpSync(join(root, name), join(checkout, name), { recursive: true });
    }
  }
  // What the package `node` installs, at half of the CPU.
  const program = `node-${process.platform}-${process.arch}`;
  const aliases = [tooOld, ...others].map((version) => `node-${version}@npm:${program}@${version}`);
  await runWell('npm', ['install', '--no-save', '--prefix', nodes, ...aliases], nodes);
}, minutesMs);

it(
  'npm ci --omit=dev on a clone says in a sentence that it cannot build',
  async () => {
    const { status, output } = await run('npm', ['ci', '--omit=dev']);
    expect(status).not.toBe(0);
    expect(output).toMatch(
      /^dist\/ is not built from these sources, and what builds it is not installed: run .+\.$/m,
    );
    expect(output).not.toMatch(/^ +at /m);
  },
  minutesMs,
);

it(
  'a build leaves every file in its place at any moment, and those that are the same alone',
  async () => {
    // As `npm ci` has left them here.
    for (const folder of ['node_modules', 'dist']) {
      rmSync(join(checkout, folder), { recursive: true, force: true });
      await runWell('cp', ['-a', join(root, folder), checkout]);
    }
    const file = (name: string): string => join(checkout, 'dist', name);
    const before = statSync(file('chunks/supervisor.js')).ino;
    appendFileSync(join(checkout, 'src/threads/worker.ts'), '\nexport const isChanged = true;\n');
    writeFileSync(file('threads/gone.js'), '');
    let isOver = false;
    // It builds first.
    const built = run('npm', ['pack', '--pack-destination', installed]).finally(() => {
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

it(
  'the npm package brings dist/ along, and installs nothing that builds',
  async () => {
    const [file = ''] = readdirSync(installed);
    await runWell('npm', ['install', '--omit=dev', `./${file}`], installed);
    expectNoBuilders(installed);
    const program = join(installed, 'node_modules/.bin/fleetpost');
    const args = ['serve', '--json', '--data', 'data', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
    const server = spawn(program, args, { cwd: installed, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [report] = await once(createInterface(server.stdout), 'line');
      const { admin_url } = JSON.parse(report);
      expect(await fetch(`${admin_url}/console/`)).toMatchObject({ status: 200 });
      expect(await fetch(`${admin_url}/readyz`)).toMatchObject({ status: 200 });
    } finally {
      server.kill();
      await once(server, 'close');
    }
  },
  minutesMs,
);

it(`Node ${tooOld} is told which Node is needed`, async () => {
  const output = `fleetpost: Node 20.19 or newer is needed; this is Node ${tooOld}.\n`;
  expect(await serve(nodeOf(tooOld))).toEqual({ status: 1, output });
});

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
  'a clone that is built needs nothing of what builds',
  async () => {
    await runWell('npm', ['prune', '--omit=dev']);
    expectNoBuilders(checkout);
    await runWell(process.execPath, ['dist/main.js', 'config']);
    await runWell('npm', ['ci', '--omit=dev']);
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
