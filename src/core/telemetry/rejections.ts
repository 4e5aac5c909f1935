import type { Log } from './log.ts';

/** One line says of all that came in this time. */
const linePeriodMs = 1_000;

/**
 * A promise that fails with nobody to hear of it costs what it was for, and not the thread: Node would end that, and
 * with it the process. What throws outside of a promise still ends both, for then a callback of a library was left
 * half-way.
 */
export function outliveRejections(log: Log): void {
  let unsaid = 0;
  let saidAtMs = Number.NEGATIVE_INFINITY;
  process.on('unhandledRejection', (reason) => {
    unsaid += 1;
    const nowMs = performance.now();
    if (nowMs - saidAtMs < linePeriodMs) return;
    log.error({ err: reason, rejections: unsaid }, 'a promise was rejected that nobody waits for');
    saidAtMs = nowMs;
    unsaid = 0;
  });
}
