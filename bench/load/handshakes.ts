import type { Figures } from '../result.ts';
import { scriptArguments } from '../servers/server-process.ts';
import type { RunningServer } from '../servers/subject.ts';
import { runGenerator } from './generator.ts';

const processFile = new URL('handshakes-process.ts', import.meta.url);

export interface HandshakeOptions {
  version: 'TLSv1.2' | 'TLSv1.3';
  /** True if each connection resumes the session of one before it. */
  resumed: boolean;
  /** Sent in turn, one on each connection. */
  requests: readonly string[];
  /** They are templates of wakes (`wakeText`). */
  isWake?: boolean;
  /** That every answer must have. */
  status: number;
  /** Connections at a time. */
  connections: number;
  /** Length of the measurement, after the warm-up. */
  seconds: number;
}

/** Options passed to the generator's process. */
export interface HandshakeProcessOptions extends HandshakeOptions {
  url: string;
  certFile: string;
  warmUpSeconds: number;
}

const warmUpSeconds = 1;

/**
 * Connects, asks one thing, and leaves, again and again. Latency is that from the start of the connection to
 * the answer. @throws Error of `runGenerator`, also for a session that was not resumed when it should have been.
 */
export function connectAgainAndAgain(server: RunningServer, load: HandshakeOptions): Promise<Figures> {
  const { url, certFile } = server;
  const options: HandshakeProcessOptions = { url, certFile, warmUpSeconds, ...load };
  return runGenerator(process.execPath, scriptArguments(processFile, options), server);
}
