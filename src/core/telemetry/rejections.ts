import type { Log } from './log.ts';

/** At most one log line per period. */
const linePeriodMs = 1_000;

/**
 * Logs unhandled rejections instead of letting Node end the thread and with it the process: only the failed operation
 * is lost. Exceptions outside promises still end both, since a library's callback was then left half-way.
 */
export function outliveRejections(log: Log): void {
  let unreported = 0;
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  process.on('unhandledRejection', (reason) => {
    unreported += 1;
    const nowMs = performance.now();
    if (nowMs - reportedAtMs < linePeriodMs) return;
    log.error({ err: reason, rejections: unreported }, 'unhandled promise rejection');
    reportedAtMs = nowMs;
    unreported = 0;
  });
}
