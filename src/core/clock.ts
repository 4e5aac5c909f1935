/**
 * Seconds of the machine's monotonic clock, the same in all threads, where `performance.now` counts from the
 * start of each; a jump of the time of day does not move it.
 */
const startedAtSeconds = ((): number => {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds + nanoseconds / 1e9 - performance.now() / 1_000;
})();

export function monotonicSeconds(performanceNowMs = performance.now()): number {
  return startedAtSeconds + performanceNowMs / 1_000;
}

/** A step of the wall clock up to this is taken as its correction; anything more is a jump. */
export const correctionMsMax = 2_000;
