import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { AgentProcess, agentFile } from './agent-process.ts';

let server: TestServer;
let device: TestDevice;
beforeAll(async () => {
  server = await TestServer.start();
  device = await (await createFleet(server)).createDevice();
});
afterAll(() => server[Symbol.asyncDispose]());

const newAgent = (more: NodeJS.ProcessEnv = {}): AgentProcess =>
  new AgentProcess({
    FOSTROM_FLEET_ID: device.fleetId,
    FOSTROM_DEVICE_ID: device.deviceId,
    FOSTROM_DEVICE_SECRET: device.secret,
    FLEETPOST_URL: server.url,
    FLEETPOST_CA: server.report.cert_file,
    ...more,
  });

it('version is what the installer of the SDKs asks for', () => {
  expect(newAgent().command('version')).toEqual({ status: 0, text: 'v0.1.0' });
});

it('start, start again, status, stop, stop again', async () => {
  await using agent = newAgent();
  expect(agent.command('start')).toEqual({ status: 0, text: expect.stringMatching(/^started: /) });
  expect(agent.command('start')).toEqual({ status: 0, text: expect.stringMatching(/^already_started: /) });
  expect(statSync(agent.socketPath).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(agent.socketPath)).mode & 0o777).toBe(0o700);
  expect(() => process.kill(agent.pid, 0)).not.toThrow();
  await until(() => agent.command('status').status === 0);
  expect(agent.command('status').text).toMatch(/^connected: /);
  expect(agent.command('stop')).toEqual({ status: 0, text: expect.stringMatching(/^stopped: /) });
  expect(agent.command('stop').text).toMatch(/^already_stopped: /);
  expect(readdirSync(dirname(agent.socketPath))).toEqual([]);
});

it('what is missing or cannot be right is said on stdout as an atom and a text, with exit status 1', () => {
  const wrong: [NodeJS.ProcessEnv, string][] = [
    [{ FOSTROM_FLEET_ID: undefined }, 'invalid_fleet_id'],
    [{ FOSTROM_DEVICE_ID: 'x' }, 'invalid_device_id'],
    [{ FOSTROM_DEVICE_SECRET: 'x' }, 'invalid_device_secret'],
    [{ FLEETPOST_URL: undefined }, 'missing_url'],
    [{ FLEETPOST_URL: 'http://127.0.0.1' }, 'invalid_setting'],
    [{ FLEETPOST_CA: '/nosuch' }, 'invalid_setting'],
  ];
  for (const [environment, atom] of wrong) {
    expect(newAgent(environment).command('start')).toEqual({
      status: 1,
      text: expect.stringMatching(new RegExp(`^${atom}: .`)),
    });
  }
  expect(newAgent().command('nosuch').text).toMatch(/^invalid_command: /);
  expect(newAgent().command('start', '--nosuch').text).toMatch(/^invalid_option: /);
});

it('of two starts at once both succeed, and one agent runs', async () => {
  await using agent = newAgent();
  const starts = [0, 1, 2].map(async () => {
    const child = spawn(process.execPath, [agentFile, 'start'], { env: agent.environment });
    let text = '';
    child.stdout.on('data', (part) => {
      text += part;
    });
    const [status] = await once(child, 'close');
    return [status, text.split(':')[0]];
  });
  const ends = (await Promise.all(starts)).sort();
  expect(ends).toEqual([
    [0, 'already_started'],
    [0, 'already_started'],
    [0, 'started'],
  ]);
});

it('what an agent that was killed has left is in nobody’s way', async () => {
  await using agent = newAgent();
  agent.command('start');
  const { pid } = agent;
  process.kill(pid, 'SIGKILL');
  await until(() => agent.command('status').text.startsWith('not_running'));
  expect(existsSync(agent.socketPath)).toBe(true);
  expect(agent.command('start').text).toMatch(/^started: /);
  expect(agent.pid).not.toBe(pid);
});

it('the agent of another device is not taken for one of this', async () => {
  await using agent = newAgent();
  agent.command('start');
  await using other = newAgent({ FOSTROM_DEVICE_ID: 'OTHER00001', FLEETPOST_SOCKET: agent.socketPath });
  expect(other.command('start')).toEqual({ status: 1, text: expect.stringMatching(/^unauthorized: /) });
});

it('an agent whose secret is refused is replaced by a start with another', async () => {
  await using agent = newAgent({ FOSTROM_DEVICE_SECRET: `FOS-${'x'.repeat(32)}` });
  agent.command('start');
  await until(() => agent.command('status').text.startsWith('unauthorized'));
  agent.environment.FOSTROM_DEVICE_SECRET = device.secret;
  expect(agent.command('start').text).toMatch(/^started: /);
  await until(() => agent.command('status').status === 0);
});

it('a file that is no socket stays', () => {
  const agent = newAgent();
  mkdirSync(dirname(agent.socketPath), { mode: 0o700 });
  writeFileSync(agent.socketPath, 'precious');
  expect(agent.command('start')).toEqual({ status: 1, text: expect.stringMatching(/^invalid_socket: /) });
  expect(statSync(agent.socketPath).size).toBe(8);
});

it('a folder where others may listen in the agent’s place is refused, sticky or not', () => {
  for (const mode of [0o777, 0o1777, 0o770]) {
    const agent = newAgent();
    mkdirSync(dirname(agent.socketPath));
    chmodSync(dirname(agent.socketPath), mode);
    for (const word of ['start', 'run', 'status', 'stop']) {
      expect(agent.command(word)).toEqual({ status: 1, text: expect.stringMatching(/^invalid_folder: /) });
    }
    expect(readdirSync(dirname(agent.socketPath))).toEqual([]);
  }
});

it('installed by fleetpost, whose files are private, the shims are for every user too', () => {
  const folder = join(temporaryFolder(), 'sdk', '.agent');
  const program = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
  const { stdout } = spawnSync(process.execPath, [program, 'agent', 'install', folder], { encoding: 'utf8' });
  expect(stdout).toMatch(/^installed: /);
  const made = [dirname(folder), folder, join(folder, 'fostrom-device-agent')];
  expect(made.map((path) => statSync(path).mode & 0o777)).toEqual([0o755, 0o755, 0o755]);
});

it('install puts a shim for every processor where an SDK looks, and the file runs alone', async () => {
  const folder = temporaryFolder();
  const alone = join(folder, 'agent.mjs');
  copyFileSync(agentFile, alone);
  chmodSync(alone, 0o400);
  const agent = newAgent({ FLEETPOST_QUEUE: join(folder, 'it\'s $1 "queue"') });
  const place = join(folder, 'sdk', '.agent');
  spawnSync(process.execPath, [alone, 'install', place], { env: agent.environment });
  expect(readdirSync(place).sort()).toEqual([
    'fostrom-device-agent',
    ...['amd64', 'arm64', 'armv6hf', 'riscv64'].map((name) => `fostrom-device-agent-linux-${name}`),
  ]);
  const link = join(place, 'fostrom-device-agent');
  expect(readlinkSync(link)).toMatch(/^fostrom-device-agent-linux-/);
  const { PATH, FLEETPOST_SOCKET } = agent.environment;
  const { FOSTROM_FLEET_ID, FOSTROM_DEVICE_ID, FOSTROM_DEVICE_SECRET } = agent.environment;
  const env = { PATH, FLEETPOST_SOCKET, FOSTROM_FLEET_ID, FOSTROM_DEVICE_ID, FOSTROM_DEVICE_SECRET };
  const run = (word: string): string => spawnSync(link, [word], { env, encoding: 'utf8' }).stdout;
  expect(run('version')).toBe('v0.1.0\n');
  expect(run('start')).toMatch(/^started: /);
  await until(() => run('status').startsWith('connected'));
  expect(existsSync(join(folder, 'it\'s $1 "queue"'))).toBe(true);
  run('stop');
});
