import { type Logger, pino } from 'pino';
import { isUnavailable } from '../errors.ts';

export type Log = Logger;

/** Secrets of devices and tokens of operators, wherever they stand: what is logged names neither, but a library's error might. */
const secrets = /\b(FOS-[A-Za-z0-9]{4})[A-Za-z0-9]{28}\b|\b(Bearer )[^\s"\\]+/gi;
const messageLengthMax = 1_000;

/** Not whatever else hangs on an error of a library, such as the request it failed over. */
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

/** JSON lines on stderr, so that stdout stays free for what a command prints. */
export function createLog(level: string, bindings: Record<string, unknown> = {}): Log {
  const options = {
    level,
    base: bindings,
    serializers: { err: describeError },
    hooks: { streamWrite: (line: string) => line.replace(secrets, '$1$2…') },
  };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/** Of work that is tried again. A store that is away, or full, is no defect of the server: a warning. */
export function logFailure(log: Log, error: unknown, msg: string, about: Record<string, unknown> = {}): void {
  log[isUnavailable(error) ? 'warn' : 'error']({ err: error, ...about }, msg);
}
