import { type Logger, pino } from 'pino';

export type Log = Logger;

/** JSON lines on stderr, so that stdout stays free for what a command prints. */
export function createLog(level: string, bindings: Record<string, unknown> = {}): Log {
  return pino({ level, base: bindings }, pino.destination({ fd: 2, sync: true }));
}
