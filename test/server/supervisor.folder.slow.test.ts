import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { restartDelayMs } from '../../src/server/supervisor.ts';
import { TestDevice } from '../harness/devices/device.ts';
import {
  mainFile,
  type ServerReport,
  shards,
  TestServer,
  temporaryFolder,
} from '../harness/server/server.ts';
import { pause, until } from '../harness/server/vitals.ts';

/** `serve` as an operator runs it: a parent, and a child that serves. */
class Supervised {
  readonly data: string;
  readonly process: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #exit: Promise<unknown[]>;

  constructor(data = temporaryFolder(), flags: readonly string[] = []) {
    this.data = data;
    const all = ['--json', '--demo', '--data', data, '--shards', String(shards), ...flags];
    const args = [mainFile, 'serve', ...all];
    const addresses = { FLEETPOST_LISTEN: '127.0.0.1:0', FLEETPOST_ADMIN: '127.0.0.1:0' };
    this.process = spawn(process.execPath, args, { env: { ...process.env, ...addresses } });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    // The pipes close when nobody holds them any more: the child included.
    this.#exit = once(this.process, 'close');
    started.push(this);
  }

  get report(): ServerReport {
    return JSON.parse(this.stdout) as ServerReport;
  }

  /** The child that serves, or would. */
  get child(): number | undefined {
    const { pid } = this.process;
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
      return Number(children.split(' ')[0]) || undefined;
    } catch {
      return undefined;
    }
  }

  async ready(): Promise<void> {
    await until(() => this.stdout.endsWith('\n') || this.process.exitCode !== null);
  }

  async end(signal: NodeJS.Signals): Promise<unknown[]> {
    this.process.kill(signal);
    return this.ended();
  }

  ended(): Promise<unknown[]> {
    return this.#exit;
  }
}

const started: Supervised[] = [];

afterEach(async () => {
  for (const server of started.splice(0)) {
    if (server.process.exitCode === null && server.process.signalCode === null) await server.end('SIGTERM');
  }
});

async function isAnswered(device: TestDevice): Promise<boolean> {
  try {
    return (await device.heartbeat()).status === 201;
  } catch {
    return false;
  }
}

/** The demo device; of a server it needs where it is and what it trusts. */
function demoDevice({ report }: Supervised): TestDevice {
  const { demo, url, cert_file } = report;
  if (demo === null) throw new Error('no first start');
  const agent = TestServer.agentFor(readFileSync(cert_file, 'utf8'));
  const server = { url, agent } as unknown as TestServer;
  return new TestDevice(server, demo.fleet_id, demo.device_id, demo.device_secret);
}

/** Asks the admin API for the hold, or to end it. */
async function hold({ data, report }: Supervised, method: 'GET' | 'DELETE'): Promise<unknown> {
  const { token } = JSON.parse(readFileSync(join(data, 'admin.json'), 'utf8'));
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${report.admin_url}/admin/v1/hold`, { method, headers })).json();
}

it('a server that is killed is started again where it was, and says once on stdout that it is ready', {
  timeout: 120_000,
}, async () => {
  // Any port, and after a restart the same one: which `--listen` cannot say twice.
  const server = new Supervised(undefined, ['--listen', '127.0.0.1:0', '--admin=127.0.0.1:0', '--paused']);
  await server.ready();
  const device = demoDevice(server);
  expect(await isAnswered(device)).toBe(true);
  expect(server.report.pid).toBe(server.child);
  for (let kill = 1; kill <= 2; kill += 1) {
    const before = server.child ?? 0;
    process.kill(before, 'SIGKILL');
    await until(() => server.child !== undefined && server.child !== before);
    await until(() => isAnswered(device));
    expect(server.stderr.split('; restarting')).toHaveLength(kill + 1);
    await until(() => server.stderr.split('"msg":"ready"').length === kill + 2);
    // Started paused, it is held until it is released, and then for good.
    expect(await hold(server, 'GET')).toMatchObject({ held: kill === 1 });
    expect(await hold(server, 'DELETE')).toEqual({ released: kill === 1 });
  }
  const child = server.child ?? 0;
  expect(await server.end('SIGTERM')).toEqual([0, null]);
  expect(existsSync(`/proc/${child}`)).toBe(false);
  // One document, of the first start.
  expect(server.report.demo).not.toBeNull();
});

it('a server that dies at once again and again is started ever more slowly, says so, and serves once it can', async () => {
  const server = new Supervised();
  let killed = 0;
  let kills = 0;
  while (kills < 8) {
    const { child } = server;
    if (child !== undefined && child !== killed) {
      process.kill(child, 'SIGKILL');
      killed = child;
      kills += 1;
    }
    await pause(1);
  }
  await server.ready();
  expect(await isAnswered(demoDevice(server))).toBe(true);
  const waits = server.stderr.match(/SIGKILL.*?restarting[^.]*\.\d/g)?.map((line) => line.slice(-3));
  expect(waits).toEqual(['0.1', '0.2', '0.4', '0.8', '1.6', '3.2', '6.4']);
  expect(server.stderr).toContain('8 times in a row within 5 s of being ready; restarting in 6.4 s');
  expect([11, 12, 10_000].map(restartDelayMs)).toEqual([51_200, 60_000, 60_000]);
});

it('a server that waits to be started again can be stopped', async () => {
  const server = new Supervised();
  let killed = 0;
  while (!server.stderr.includes('restarting in 3.2 s')) {
    const { child } = server;
    if (child !== undefined && child !== killed) process.kill(child, 'SIGKILL');
    killed = child ?? killed;
    await pause(1);
  }
  expect(await server.end('SIGTERM')).toEqual([null, 'SIGTERM']);
});

it('a server whose parent is killed ends in order and leaves the folder free', async () => {
  const server = new Supervised();
  await server.ready();
  const device = demoDevice(server);
  const datapoint = await device.request('POST', '/v1/datapoint/temperature', { celsius: 1 });
  expect(datapoint.status).toBe(201);
  await server.end('SIGKILL');
  await using again = await TestServer.start({}, server.data);
  expect((await device.on(again).heartbeat()).status).toBe(201);
});

it.each(['SIGTERM', 'SIGINT'] as const)('%s ends both, whenever it comes', async (signal) => {
  const early = new Supervised();
  await until(() => early.child !== undefined);
  const [status, by] = await early.end(signal);
  // The signal itself ends it where the server was not there to take it.
  expect([0, null]).toContain(status);
  if (status === null) expect(by).toBe(signal);
  const server = new Supervised(early.data);
  await server.ready();
  expect(await server.end(signal)).toEqual([0, null]);
});

it('a child that is told to end by somebody else is not started again', async () => {
  const server = new Supervised();
  await server.ready();
  process.kill(server.report.pid, 'SIGTERM');
  expect(await server.ended()).toEqual([0, null]);
});

it('SIGUSR1 opens no inspector, neither of the parent nor of the server', async () => {
  const server = new Supervised();
  await server.ready();
  const device = demoDevice(server);
  for (const pid of [server.process.pid ?? 0, server.report.pid]) process.kill(pid, 'SIGUSR1');
  // Long enough for what should not come.
  await pause(1_000);
  // A process that opens an inspector, or cannot, says so.
  expect(server.stderr).not.toMatch(/debugger|inspector/i);
  expect(await isAnswered(device)).toBe(true);
});

it('SIGHUP is passed on, and waits for a server that is starting', async () => {
  const server = new Supervised();
  await until(() => server.child !== undefined);
  server.process.kill('SIGHUP');
  await server.ready();
  await until(() => server.stderr.includes('configuration reloaded'));
  server.process.kill('SIGHUP');
  await until(() => server.stderr.split('configuration reloaded').length === 3);
  expect(await server.end('SIGTERM')).toEqual([0, null]);
});
