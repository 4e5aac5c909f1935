import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { TestDevice } from '../devices/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../devices/raw.ts';
import { statOf } from '../machine/process-tree.ts';
import { shards, type TestServer } from './server.ts';

/** File descriptors that the server process has open. */
export function openFiles(server: TestServer): number {
  return readdirSync(`/proc/${server.process.pid}/fd`).length;
}

/** Memory of the process's own: the store's map, which grows with what is stored, is not in it. */
export function ownMebibytes(server: TestServer): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** User and system time of the process so far; the kernel counts it in hundredths of a second. */
export function cpuSeconds(server: TestServer): number {
  const [user, system] = statOf(server.report.pid)?.slice(11, 13) ?? [];
  return (Number(user) + Number(system)) / 100;
}

/** The samples of one metric, in the order of its label. */
export async function metric(server: TestServer, name: string): Promise<number[]> {
  const text = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map((match) =>
    Number(match[1]),
  );
}

export async function openStreams(server: TestServer): Promise<number> {
  return (await metric(server, 'fleetpost_streams_open')).reduce((sum, one) => sum + one, 0);
}

/** A heartbeat on as many new connections as there are workers, which the acceptor deals one to each. */
export async function expectAlive(server: TestServer, device: TestDevice): Promise<void> {
  for (let worker = 0; worker < shards; worker += 1) {
    const connection = await RawConnection.open(server);
    connection.write(requestText('POST', '/v1/heartbeat', { ...device.credentials }));
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  }
  // A machine that stood still for a while, or whose clock was set, is none of its faults.
  const said = server.stderr
    .split('\n')
    .filter((line) => line !== '' && !line.includes('"msg":"clock jumped;'));
  expect([server.isRunning, said]).toEqual([true, []]);
}

/** A datapoint request up to its body, which it takes in the way that `framing` says. */
export function datapointHead(device: TestDevice, framing: Record<string, string>): string {
  return requestText('POST', '/v1/datapoint/reading', {
    ...device.credentials,
    'Content-Type': 'application/json',
    ...framing,
  });
}

export function datapoint(device: TestDevice, body: string): string {
  return datapointHead(device, { 'Content-Length': String(Buffer.byteLength(body)) }) + body;
}

export function errorOf(answer: RawAnswer): string {
  return (JSON.parse(answer.body) as { error: string }).error;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Settles when the condition holds; for tests that run beside others, where `expect.poll` cannot. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    // Ever more rarely: to ask a server all the time takes a processor from what is waited for.
    await pause(Math.min(2 + waitedMs / 20, 100));
  }
}
