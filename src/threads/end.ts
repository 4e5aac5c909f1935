import type { Log } from '../core/telemetry/log.ts';

/**
 * Ends the whole process at once, with a reason, for its parent to start again. Nothing is lost, since all
 * that was answered is on disk; an orderly end needs threads that still work.
 */
export function endProcess(log: Log, reason: string, error?: Error): void {
  log.fatal({ err: error }, `${reason}; the process ends`);
  process.kill(process.pid, 'SIGKILL');
}
