import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Figures } from '../result.ts';
import { cpuFigures, type ServerTimes, serverTimes } from '../servers/server-times.ts';
import type { RunningServer } from '../servers/subject.ts';

/** Report that every generator prints last, as one line of JSON. */
export interface GeneratorReport {
  /** Answers in all, those of the warm-up included. */
  requests: number;
  p50Microseconds: number;
  p99Microseconds?: number;
  p999Microseconds?: number;
  /** Counts by kind: of connections, of answers that were not the expected ones. */
  errors: Readonly<Record<string, number>>;
}

interface Sample {
  timeMs: number;
  times: ServerTimes;
}

/**
 * Runs a load generator against a server and measures what the server needs meanwhile: from the generator's
 * line "steady N" (N answers lie before it, those of its warm-up) to its line "end", or to its own end.
 * @throws Error when the generator fails, or counted an error.
 */
export async function runGenerator(
  file: string,
  args: readonly string[],
  server: RunningServer,
): Promise<Figures> {
  const sample = (): Sample => ({
    timeMs: performance.now(),
    times: serverTimes(server),
  });
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let steady: (Sample & { requests: number }) | undefined;
  let end: Sample | undefined;
  const complaints: string[] = [];
  createInterface(child.stderr).on('line', (line) => {
    const [word, number] = line.split(' ');
    if (word === 'steady') steady = { ...sample(), requests: Number(number) };
    else if (word === 'end') end = sample();
    else complaints.push(line);
  });
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
  end ??= sample();
  if (child.exitCode !== 0 || steady === undefined) {
    throw new Error(`${file} failed: ${complaints.join(' ') || output.trim()}`);
  }
  const report = JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as GeneratorReport;
  refuseErrors(report);
  const requests = report.requests - steady.requests;
  return {
    operationsPerSecond: (requests * 1_000) / (end.timeMs - steady.timeMs),
    ...cpuFigures(steady.times, end.times, requests),
    p50Milliseconds: report.p50Microseconds / 1_000,
    ...(report.p99Microseconds !== undefined && { p99Milliseconds: report.p99Microseconds / 1_000 }),
    ...(report.p999Microseconds !== undefined && { p999Milliseconds: report.p999Microseconds / 1_000 }),
  };
}

function refuseErrors({ requests, errors }: GeneratorReport): void {
  const found = Object.entries(errors).filter(([, count]) => count > 0);
  if (found.length === 0) return;
  const kinds = found.map(([kind, count]) => `${count} × ${kind}`).join(', ');
  throw new Error(`of ${requests} answers some were not what was asked for: ${kinds}`);
}
