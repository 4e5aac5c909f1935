import type { BenchmarkOptions } from '../benchmark.ts';
import type { RunningServer, Subject } from './subject.ts';

export interface Started<S extends RunningServer = RunningServer> {
  subject: Subject<S>;
  shards: number;
  server: S;
}

/**
 * Starts subjects side by side and stops all of them when `use` is done. One that is missing here is skipped
 * with what would help.
 */
export async function withServers<S extends RunningServer, T>(
  wanted: readonly { subject: Subject<S>; shards: number }[],
  devices: number,
  { progress, skip }: BenchmarkOptions,
  use: (started: readonly Started<S>[]) => Promise<T>,
): Promise<T> {
  const reasons = new Map(wanted.map(({ subject }) => [subject, subject.missing()]));
  for (const [{ name }, reason] of reasons) if (reason !== undefined) skip({ subject: name, reason });
  const started: Started<S>[] = [];
  try {
    for (const { subject, shards } of wanted) {
      if (reasons.get(subject) !== undefined) continue;
      progress(`starting ${subject.name}`);
      started.push({ subject, shards, server: await subject.start({ shards, devices }) });
    }
    return await use(started);
  } finally {
    for (const { server } of started) await server.stop();
  }
}
