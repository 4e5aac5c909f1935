/**
 * The name of a mail says when it was due, since it is what an event carries: an `m` and microseconds of the
 * machine's monotonic clock. On Linux `process.hrtime` is the same in all processes.
 */
export function nameOfMail(dueMicroseconds: number): string {
  return `m${Math.round(dueMicroseconds)}`;
}

/** The due times of all mail that these events announce. */
export function dueTimesIn(events: string): number[] {
  return Array.from(events.matchAll(/"name":"m(\d+)"/g), ([, microseconds]) => Number(microseconds));
}

export function nowMicroseconds(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + nanoseconds / 1e3;
}
