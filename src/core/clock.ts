/**
 * Origin of this thread's `performance.now` on the machine's monotonic clock, which is the same in all threads and
 * unaffected by changes of the wall clock.
 */
const startedAtSeconds = ((): number => {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds + nanoseconds / 1e9 - performance.now() / 1_000;
})();

export function monotonicSeconds(performanceNowMs = performance.now()): number {
  return startedAtSeconds + performanceNowMs / 1_000;
}

/** Largest step of the wall clock that counts as a correction; anything more is a jump. */
export const correctionMsMax = 2_000;
