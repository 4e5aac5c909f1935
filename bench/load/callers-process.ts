import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import type { CallersOptions, CallersWord } from './callers.ts';
import { DeviceConnection } from './device-connection.ts';

process.on('disconnect', () => process.exit());
const [options] = (await once(process, 'message')) as [CallersOptions];
const { url, certFile, manner, devices, intervalSeconds, seconds } = options;
const { hostname: host, port } = new URL(url);
const secureContext = createSecureContext({ ca: readFileSync(certFile), minVersion: 'TLSv1.3' });
const intervalMs = intervalSeconds * 1_000;

let calls = 0;
/** Bytes of connections that are closed. */
let bytesBefore = 0;
const open = new Set<DeviceConnection>();

function say(word: CallersWord): void {
  process.send?.(word);
}

function connect(session: Buffer | undefined): DeviceConnection {
  const connection = DeviceConnection.open({ host, port: Number(port), secureContext, session });
  open.add(connection);
  return connection;
}

function leave(connection: DeviceConnection): void {
  open.delete(connection);
  bytesBefore += connection.bytes;
  connection.close();
}

async function ask(connection: DeviceConnection, request: string, status: number): Promise<void> {
  const answer = await connection.ask(request);
  if (!answer.startsWith(`HTTP/1.1 ${status} `)) throw new Error(`it was answered "${answer}"`);
}

/** Calls once in every interval, from a moment of its own on. */
async function callAgainAndAgain(
  { sync, wait: waitText, events }: CallersOptions['devices'][number],
  firstMs: number,
): Promise<void> {
  let kept: DeviceConnection | undefined;
  let session: Buffer | undefined;
  for (let dueMs = firstMs; ; dueMs += intervalMs) {
    await wait(dueMs - performance.now());
    if (manner !== 'reconnects' && kept === undefined) {
      kept = connect(session);
      if (manner === 'streams') await kept.follow(events);
    }
    const connection = manner === 'waits' && kept ? kept : connect(session);
    await ask(connection, sync, 200);
    calls += 1;
    session = connection.session;
    if (connection !== kept) leave(connection);
    else {
      // Whole seconds, so that it is over when the next call is due.
      const left = Math.floor((dueMs + intervalMs - performance.now()) / 1_000);
      await ask(connection, waitText.replace('SECONDS', String(left)), 204);
    }
  }
}

function counted(): { calls: number; bytes: number } {
  let bytes = bytesBefore;
  for (const connection of open) bytes += connection.bytes;
  return { calls, bytes };
}

async function measure(): Promise<void> {
  // All have called, and begun to wait.
  await wait(intervalMs * 1.1);
  say({ type: 'steady', ...counted() });
  await wait(seconds * 1_000);
  say({ type: 'end', ...counted() });
}

const failed = (error: Error): void => say({ type: 'failed', reason: error.message });
const startMs = performance.now();
for (const [index, device] of devices.entries()) {
  callAgainAndAgain(device, startMs + (index / devices.length) * intervalMs).catch(failed);
}
measure().catch(failed);
