import { createHistogram } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { Figures } from '../result.ts';
import type { Fleetpost } from '../servers/fleetpost.ts';
import type { Credentials } from '../servers/subject.ts';
import { type MailFlow, sendMail } from './mail-flow.ts';
import type { StreamHolders } from './stream-holders.ts';

/** Timeout after which an announcement counts as lost. */
const announcementSeconds = 10;
const pollMs = 20;
/** No more comes where so long nothing came. */
const quietMs = 500;

/**
 * Queues mail through the admin API of one server and waits until each has been announced, wherever its stream is;
 * answers how long each took since it was due, in microseconds. @throws Error as `sendMail` and `announced`
 */
export async function sendAndAwait(
  sender: Fleetpost,
  devices: readonly Credentials[],
  holders: StreamHolders,
  flow: MailFlow,
): Promise<number[]> {
  return announced(holders, await sendMail(sender, devices, flow));
}

/** Streams that were opened just now begin with the mail that waits already: that is read, and counts for nothing. */
export async function forgetFirst(holders: StreamHolders): Promise<void> {
  let isOver = false;
  while (!isOver) {
    await wait(quietMs);
    isOver = (await holders.report()).latenciesMicroseconds.length === 0;
  }
}

/**
 * Waits until so many mails have been announced; answers how long each took since it was due, in microseconds.
 * @throws Error when one is not announced in time, or a stream is closed.
 */
export async function announced(holders: StreamHolders, mails: number): Promise<number[]> {
  const latencies: number[] = [];
  const endMs = performance.now() + announcementSeconds * 1_000;
  do {
    const report = await holders.report();
    latencies.push(...report.latenciesMicroseconds);
    if (report.closed > 0) throw new Error(`${report.closed} of the event streams were closed`);
    if (latencies.length === mails) return latencies;
    await wait(pollMs);
  } while (performance.now() < endMs);
  throw new Error(`of ${mails} mails ${latencies.length} were announced`);
}

export function percentilesOf(latenciesMicroseconds: readonly number[]): Figures {
  const histogram = createHistogram();
  for (const latency of latenciesMicroseconds) histogram.record(Math.max(1, Math.round(latency)));
  return {
    p50Milliseconds: histogram.percentile(50) / 1_000,
    p99Milliseconds: histogram.percentile(99) / 1_000,
    p999Milliseconds: histogram.percentile(99.9) / 1_000,
  };
}
