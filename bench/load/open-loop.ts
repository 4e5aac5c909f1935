import type { Figures } from '../result.ts';
import { scriptArguments } from '../servers/server-process.ts';
import type { RunningServer } from '../servers/subject.ts';
import { runGenerator } from './generator.ts';
import type { Requests } from './requests.ts';

const processFile = new URL('open-loop-process.ts', import.meta.url);

interface LoadOptions {
  /** Sent in turn, each on the connection that has been idle for longest. */
  requests: Requests;
  /** Those that an answer may have. */
  statuses: readonly number[];
  connections: number;
  /** After the warm-up. */
  seconds: number;
}

export interface OpenLoopOptions extends LoadOptions {
  ratePerSecond: number;
}

/** What the generator's process is told. */
export interface LoopProcessOptions extends Omit<LoadOptions, 'requests'> {
  /** Absent: a closed loop. */
  ratePerSecond?: number;
  url: string;
  certFile: string;
  requestFile: string;
  warmUpSeconds: number;
}

/** Left out of what is measured. */
const warmUpSeconds = 1;

/**
 * Open loop: requests are due at a constant rate, and latency is counted from then, so that a stall of the
 * server is counted for every request that it holds up. @throws Error of `runGenerator`.
 */
export function openLoop(server: RunningServer, options: OpenLoopOptions): Promise<Figures> {
  return runLoop(server, options);
}

/** The same generator as a closed loop, for what wrk cannot do. @throws Error of `runGenerator`. */
export function closedLoopByNode(server: RunningServer, options: LoadOptions): Promise<Figures> {
  return runLoop(server, options);
}

function runLoop(
  server: RunningServer,
  { requests, ...load }: LoadOptions & { ratePerSecond?: number },
): Promise<Figures> {
  const { url, certFile } = server;
  const options: LoopProcessOptions = {
    url,
    certFile,
    requestFile: requests.file,
    warmUpSeconds,
    ...load,
  };
  return runGenerator(process.execPath, scriptArguments(processFile, options), server);
}
