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
  /** Length of the measurement, after the warm-up. */
  seconds: number;
  /** Left out of what is measured. */
  warmUpSeconds?: number;
}

export interface ClosedLoopOptions extends LoadOptions {
  /** It ends with the answer to the last of so many, for requests that can be sent once; `seconds` must be enough. */
  requestsCount?: number;
}

export interface OpenLoopOptions extends LoadOptions {
  ratePerSecond: number;
  /** Pause between two looks at what is due, for a load that leaves the core to others; absent: none. */
  turnMs?: number;
}

/** Options passed to the generator's process. */
export interface LoopProcessOptions extends Omit<LoadOptions, 'requests'> {
  /** Absent: a closed loop. */
  ratePerSecond?: number;
  requestsCount?: number;
  turnMs?: number;
  /** URLs of all nodes: each has the same number of connections, as a TCP load balancer deals them out. */
  urls: readonly string[];
  certFile: string;
  requestFile: string;
  warmUpSeconds: number;
}

/**
 * Open loop: requests are due at a constant rate, and latency is counted from then, so that a stall of the
 * server is counted for every request that it holds up. @throws Error of `runGenerator`.
 */
export function openLoop(server: RunningServer, options: OpenLoopOptions): Promise<Figures> {
  return runLoop(server, options);
}

/** The same generator as a closed loop, for what wrk cannot do. @throws Error of `runGenerator`. */
export function closedLoopByNode(server: RunningServer, options: ClosedLoopOptions): Promise<Figures> {
  return runLoop(server, options);
}

function runLoop(
  server: RunningServer,
  { requests, ...load }: ClosedLoopOptions & { ratePerSecond?: number; turnMs?: number },
): Promise<Figures> {
  const { certFile, nodes = [server] } = server;
  const options: LoopProcessOptions = {
    urls: nodes.map(({ url }) => url),
    certFile,
    requestFile: requests.file,
    warmUpSeconds: 1,
    ...load,
  };
  return runGenerator(process.execPath, scriptArguments(processFile, options), server);
}
