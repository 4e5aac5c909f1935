import { expect, it } from 'vitest';
import { createFleet } from '../harness/devices/device.ts';
import { RawConnection } from '../harness/devices/raw.ts';
import { evaluate, inspected } from '../harness/server/inspector.ts';
import { shards, TestServer } from '../harness/server/server.ts';
import { datapoint, metric, pause, until } from '../harness/server/vitals.ts';

const stalls = (server: TestServer): Promise<number[]> => metric(server, 'fleetpost_event_loop_stalls_total');

it('a process that is stopped and goes on logs a stall, and lives', async () => {
  await using server = await TestServer.start({ stallMilliseconds: 2_000, stallEndSeconds: 2 });
  const device = await (await createFleet(server)).createDevice();
  server.process.kill('SIGSTOP');
  await pause(6_000);
  server.process.kill('SIGCONT');
  await until(async () => (await stalls(server)).every((count) => count >= 1));
  expect(await stalls(server)).toHaveLength(shards + 2);
  const [milliseconds] = /(?<="milliseconds":)\d+/.exec(server.stderr) ?? [];
  expect(Number(milliseconds)).toBeGreaterThan(3_000);
  for (const seconds of await metric(server, 'fleetpost_event_loop_stalled_seconds_total')) {
    expect(seconds).toBeGreaterThan(3);
  }
  // Longer than stallEndSeconds: nothing ends it now.
  await pause(3_000);
  expect((await device.heartbeat()).status).toBe(201);
});

it('a worker that stands still for a while is logged and counted, and goes on', async () => {
  await using server = await TestServer.start({ stallMilliseconds: 1_000 }, undefined, inspected);
  const device = await (await createFleet(server)).createDevice();
  await evaluate(server, 0, 'for (const end = Date.now() + 3000; Date.now() < end; );');
  await until(() => server.stderr.includes('event loop stalled'));
  expect((await stalls(server)).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(1);
  for (let i = 0; i < shards; i += 1) expect((await device.heartbeat()).status).toBe(201);
});

it('a worker that takes long over many requests, but goes on, does not end the process', async () => {
  await using server = await TestServer.start({ stallEndSeconds: 2 }, undefined, inspected);
  const device = await (await createFleet(server)).createDevice();
  const connections = await Promise.all(
    Array.from({ length: 20 * shards }, () => RawConnection.open(server)),
  );
  // A turn of 6 s: bodies each of which takes its time.
  await evaluate(
    server,
    0,
    'const parse = JSON.parse; JSON.parse = (text) => { for (const end = Date.now() + 300; Date.now() < end; ); return parse(text); }',
  );
  server.process.kill('SIGSTOP');
  for (const connection of connections) connection.write(datapoint(device, '{"slow":1}'));
  await until(() => connections.every(({ socket }) => socket.writableLength === 0));
  server.process.kill('SIGCONT');
  for (const connection of connections) {
    expect((await connection.answer(false, 40_000)).status).toBe(201);
    connection.destroy();
  }
  expect(server.isRunning).toBe(true);
});

it('a worker in an endless loop ends the process, with a reason', async () => {
  await using server = await TestServer.start({ stallEndSeconds: 2 }, undefined, inspected);
  await evaluate(server, 0, 'for (;;);');
  await server.ended();
  expect(server.process.signalCode).toBe('SIGKILL');
  expect(server.stderr).toMatch(/worker [0-9]+ stalled for 2 s \(stallEndSeconds\); process ends/);
});

it('a worker that takes long to close when the server stops is no stall', async () => {
  await using server = await TestServer.start({ stallEndSeconds: 2 }, undefined, inspected);
  await evaluate(
    server,
    0,
    `const { parentPort } = process.getBuiltinModule('node:worker_threads');
    const close = parentPort.close.bind(parentPort);
    parentPort.close = () => void setTimeout(close, 4_000);
    console.error('closes late');`,
  );
  await until(() => server.stderr.includes('closes late'));
  const startMs = performance.now();
  server.process.kill('SIGTERM');
  await server.ended();
  expect([server.process.exitCode, server.process.signalCode]).toEqual([0, null]);
  expect(performance.now() - startMs).toBeGreaterThan(3_500);
});

it('while the main thread stands still devices connect and are served, until mainStallEndSeconds', async () => {
  const limits = { stallEndSeconds: 2, mainStallEndSeconds: 8 };
  await using server = await TestServer.start(limits, undefined, inspected);
  const device = await (await createFleet(server)).createDevice();
  await evaluate(server, 'main', 'for (;;);');
  // Longer than a stalled worker would have had.
  for (const end = performance.now() + 5_000; performance.now() < end; ) {
    const connection = await RawConnection.open(server);
    connection.write(datapoint(device, '{"fresh":1}'));
    expect((await connection.answer(false, 40_000)).status).toBe(201);
    connection.destroy();
  }
  await server.ended();
  expect(server.process.signalCode).toBe('SIGKILL');
  expect(server.stderr).toMatch(/the main thread stalled for 8 s \(mainStallEndSeconds\); process ends/);
});
