import { type Logger, pino } from 'pino';
import { isUnavailable } from '../errors.ts';

export type Log = Logger;

/** Device secrets and operators' tokens: our own lines contain neither, but a library's error might. */
const secrets = /\b(FOS-[A-Za-z0-9]{4})[A-Za-z0-9]{28}\b|\b(Bearer )[^\s"\\]+/gi;
const messageLengthMax = 1_000;

/** Omits a library's extra error properties, such as the request that failed. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error).slice(0, messageLengthMax);
  const { name, message, stack } = error;
  const { code } = error as { code?: unknown };
  return {
    type: name,
    message: message.slice(0, messageLengthMax),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    stack: stack?.slice(0, 4 * messageLengthMax),
  };
}

/** Writes JSON lines to stderr; stdout stays free for command output. */
export function createLog(level: string, bindings: Record<string, unknown> = {}): Log {
  const options = {
    level,
    base: bindings,
    serializers: { err: describeError },
    hooks: { streamWrite: (line: string) => line.replace(secrets, '$1$2…') },
  };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/** Logs a failure that will be retried. An unavailable or full store is no defect of the server: a warning. */
export function logFailure(log: Log, error: unknown, msg: string, about: Record<string, unknown> = {}): void {
  log[isUnavailable(error) ? 'warn' : 'error']({ err: error, ...about }, msg);
}

/**
 * Mutes `console.log` for as long as the process lives: nothing of ours prints by it, and NATS's library prints what it
 * cannot parse, which is the other side's own bytes, raw, among the lines of the log.
 */
export function muteLibraries(): void {
  console.log = () => {};
}
