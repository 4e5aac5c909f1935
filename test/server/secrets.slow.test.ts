/** Decision D3: secrets in the memory of a server. */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { EventStream } from '../harness/devices/event-stream.ts';
import { RawConnection, requestText } from '../harness/devices/raw.ts';
import { evaluate, inspected } from '../harness/server/inspector.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({}, undefined, inspected);
});
afterAll(() => server[Symbol.asyncDispose]());

/** Sends heartbeats on as many new connections as there are workers, which the acceptor deals one to each. */
async function beatEverywhere({ credentials }: TestDevice): Promise<void> {
  for (let worker = 0; worker < shards; worker += 1) {
    const connection = await RawConnection.open(server);
    connection.write(requestText('POST', '/v1/heartbeat', { ...credentials }));
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  }
}

/** Everything that lives on a worker's heap, after a garbage collection. */
async function heapOf(worker: number): Promise<string> {
  const folder = temporaryFolder();
  const file = join(folder, 'heap');
  const code = `process.getBuiltinModule('v8').writeHeapSnapshot('${file}.part');
    process.getBuiltinModule('fs').renameSync('${file}.part', '${file}');`;
  await evaluate(server, worker, code);
  await until(() => existsSync(file));
  const heap = readFileSync(file, 'latin1');
  rmSync(folder, { recursive: true });
  return heap;
}

it('D3: of devices that are known, have a stream open or were deleted, no secret stays in memory', async () => {
  const fleet = await createFleet(server);
  const devices = [
    await fleet.createDevice(),
    await fleet.createDevice(),
    await fleet.createDevice(),
  ] as const;
  const [known, streaming, deleted] = devices;
  for (const device of devices) await beatEverywhere(device);
  const stream = await EventStream.open(streaming);
  await server.admin('DELETE', deleted.adminPath);
  const next = await fleet.createDevice();
  for (let worker = 0; worker < shards; worker += 1) {
    // Whose request was the last may still be there.
    await beatEverywhere(next);
    const heap = await heapOf(worker);
    expect(heap.includes(known.deviceId)).toBe(true);
    expect(devices.map(({ secret }) => heap.includes(secret))).toEqual([false, false, false]);
  }
  await stream.close();
});
