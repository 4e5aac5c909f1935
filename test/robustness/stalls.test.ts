import { expect, it } from 'vitest';
import { createFleet } from '../harness/device.ts';
import { evaluate } from '../harness/inspector.ts';
import { shards, TestServer } from '../harness/server.ts';
import { metric, pause, until } from './vitals.ts';

const stalls = (server: TestServer): Promise<number[]> => metric(server, 'fleetpost_event_loop_stalls_total');

it('a process that is stopped and goes on says that it stood still, and lives', async () => {
  await using server = await TestServer.start({ stallMilliseconds: 2_000, stallEndSeconds: 2 });
  const device = await (await createFleet(server)).createDevice();
  server.process.kill('SIGSTOP');
  await pause(6_000);
  server.process.kill('SIGCONT');
  await until(async () => (await stalls(server)).every((count) => count >= 1));
  expect(await stalls(server)).toHaveLength(shards + 1);
  const [milliseconds] = /(?<="milliseconds":)\d+/.exec(server.stderr) ?? [];
  expect(Number(milliseconds)).toBeGreaterThan(3_000);
  for (const seconds of await metric(server, 'fleetpost_event_loop_stalled_seconds_total')) {
    expect(seconds).toBeGreaterThan(3);
  }
  await pause(3_000);
  expect((await device.heartbeat()).status).toBe(201);
});

it('a worker that stands still for a while is logged and counted, and goes on', async () => {
  process.env.NODE_OPTIONS = '--inspect-port=0';
  await using server = await TestServer.start({ stallMilliseconds: 1_000 });
  const device = await (await createFleet(server)).createDevice();
  await evaluate(server, 0, 'for (const end = Date.now() + 3000; Date.now() < end; );');
  await until(() => server.stderr.includes('the event loop stood still'));
  expect((await stalls(server)).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(1);
  for (let i = 0; i < shards; i += 1) expect((await device.heartbeat()).status).toBe(201);
});

it.each([0, 'main'] as const)(
  'thread %s in an endless loop ends the process, with a reason',
  async (thread) => {
    process.env.NODE_OPTIONS = '--inspect-port=0';
    await using server = await TestServer.start({ stallEndSeconds: 2 });
    await evaluate(server, thread, 'for (;;);');
    await server.ended();
    expect(server.process.signalCode).toBe('SIGKILL');
    const name = thread === 'main' ? 'the main thread' : 'worker [0-9]+';
    expect(server.stderr).toMatch(
      new RegExp(`${name} has stood still for 2 s \\(stallEndSeconds\\); the process ends`),
    );
  },
);
