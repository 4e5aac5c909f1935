import { setTimeout as pause } from 'node:timers/promises';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { TestServer } from '../harness/server/server.ts';
import { as } from '../harness/server/token.ts';
import { metric, until } from '../harness/server/vitals.ts';
import type { Attack } from './attacks.ts';
import { startAttacker } from './siege.ts';

/**
 * Latencies of another fleet while one has its way: its requests at the admin API, and its devices' new connections.
 */
export interface Seen {
  admin: Latencies;
  fresh: Latencies;
  /** Longest turn of the main thread's event loop. */
  turnMs: number;
}

export interface Latencies {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

export interface OperatorSiegeResult {
  name: string;
  /** Seen without the attack, just before. */
  before: Seen;
  during: Seen;
}

/** Pause between two requests of a witness. */
const pauseMs = 10;

function latenciesOf(measured: readonly number[]): Latencies {
  const sorted = [...measured].sort((a, b) => a - b);
  const at = (part: number): number => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
  return { requests: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}

/** Repeats a request for some seconds, the one that is under way then to its end. */
async function repeat(seconds: number, request: () => Promise<void>): Promise<Latencies> {
  const measured: number[] = [];
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    const startMs = performance.now();
    await request();
    measured.push(performance.now() - startMs);
    await pause(pauseMs);
  }
  return latenciesOf(measured);
}

/** The longest turn since the last call. */
async function longestTurnMs(server: TestServer): Promise<number> {
  const [seconds = Number.NaN] = await metric(server, 'nodejs_eventloop_lag_max_seconds');
  return seconds * 1_000;
}

/** @throws Error when a witness is answered anything but what it asked for. */
async function witness(
  device: TestDevice,
  token: string,
  seconds: number,
  onBegin: () => Promise<() => void>,
): Promise<Seen> {
  const { server } = device;
  const path = `/fleets/${device.fleetId}/devices/${device.deviceId}`;
  await longestTurnMs(server);
  const end = await onBegin();
  try {
    const [admin, fresh] = await Promise.all([
      repeat(seconds, async () => {
        const { status, body } = await as(server, token, 'GET', path);
        if (status !== 200) throw new Error(`the other fleet got ${status}: ${JSON.stringify(body)}`);
      }),
      repeat(seconds, async () => {
        const connection = await RawConnection.open(server);
        connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
        const { status, body } = await connection.answer();
        if (status !== 201) throw new Error(`the other device got ${status}: ${body}`);
        connection.destroy();
      }),
    ]);
    return { admin, fresh, turnMs: await longestTurnMs(server) };
  } finally {
    end();
  }
}

/** Measures another fleet under each attack at the admin API, and for `quietSeconds` just before it. */
export async function operatorSiege(
  attacks: readonly Attack[],
  { devices, seconds, quietSeconds }: { devices: number; seconds: number; quietSeconds: number },
): Promise<OperatorSiegeResult[]> {
  await using server = await TestServer.start();
  const [hostile, other] = [await createFleet(server), await createFleet(server)];
  const attacker = await hostile.createDevice();
  const device = await other.createDevice();
  const [hostileToken = '', otherToken = ''] = await Promise.all(
    [hostile, other].map(async ({ fleetId }) => {
      const body = { name: 'siege', scopes: ['admin'], fleet_id: fleetId };
      return (await server.admin<{ token: string }>('POST', '/tokens', body)).body.token;
    }),
  );
  const path = `/fleets/${hostile.fleetId}/devices:import`;
  await as(server, hostileToken, 'POST', path, { count: devices, tags: ['made'] });
  const results: OperatorSiegeResult[] = [];
  for (const { name } of attacks) {
    // Requests under way go on though their client is gone.
    await until(async () => (await metric(server, 'fleetpost_admin_requests_under_way'))[0] === 0);
    const before = await witness(device, otherToken, quietSeconds, async () => () => {});
    const during = await witness(device, otherToken, seconds, async () => {
      const { port, ca } = server;
      const adminPort = Number(new URL(server.report.admin_url).port);
      const { fleetId, deviceId, secret } = attacker;
      const target = { port, adminPort, ca, token: hostileToken, fleetId };
      const process = await startAttacker({ names: [name], target, fleetId, deviceId, secret, clients: 0 });
      return () => process.kill('SIGKILL');
    });
    // A warning says whose source ended the compiler.
    if (!server.isRunning || /"level":[56]0/.test(server.stderr))
      throw new Error(`${name}: the server says ${server.stderr}`);
    results.push({ name, before, during });
  }
  return results;
}
