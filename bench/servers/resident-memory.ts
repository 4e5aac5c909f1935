import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { InspectorSession } from '../../test/harness/server/inspector-session.ts';
import type { Fleetpost } from './fleetpost.ts';

/** V8 lets go of code that was not used for some collections, and of pages a moment after each. */
const collections = 5;
const settleMs = 500;

/**
 * Has a Node process collect the garbage of all its threads, through its inspector: what remains resident
 * then is in use, where the size of a heap at any other moment is chance.
 */
async function collectGarbage(inspectorUrl: string): Promise<void> {
  using session = await InspectorSession.open(inspectorUrl);
  await session.ask('NodeWorker.enable', { waitForDebuggerOnStart: false });
  for (const worker of [undefined, ...session.workers]) {
    await session.ask('HeapProfiler.collectGarbage', {}, worker);
  }
}

/** VmRSS of an inspected server without garbage, in bytes. */
export async function residentBytes(server: Fleetpost): Promise<number> {
  const [pid] = server.processIds();
  for (let collection = 0; collection < collections; collection += 1) {
    await collectGarbage(server.inspectorUrl);
    await wait(settleMs);
  }
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) * 1_024;
}
