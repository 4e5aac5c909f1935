import { ApiError } from '../../core/errors.ts';

/** RFC 3339, 5.6: seconds and a zone are required, and letters may be small. */
const pattern = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
const aheadSecondsMax = 300;

function refused(msg: string): ApiError {
  return new ApiError('invalid_recorded_at', { msg });
}

/** The last day that was found to exist: most times of one queue are of the same. */
let knownDay = '';

/** True if a day is in the calendar: `Date.parse` takes February 31 for March 3. */
function exists(day: string): boolean {
  if (day === knownDay) return true;
  const timeMs = Date.parse(day);
  if (Number.isNaN(timeMs) || !new Date(timeMs).toISOString().startsWith(day)) return false;
  knownDay = day;
  return true;
}

/**
 * Parses the header `Recorded-At`, by which a device dates what waited in its own queue (D25). Cut to milliseconds.
 * @throws ApiError invalid_recorded_at.
 */
export function parseRecordedAt(header: string, nowMs: number, ageSecondsMax: number): number {
  const day = pattern.exec(header)?.[1];
  const timeMs = day !== undefined && exists(day) ? Date.parse(header.toUpperCase()) : Number.NaN;
  if (Number.isNaN(timeMs)) throw refused('Recorded-At must be a time like 2026-01-31T08:00:00Z.');
  if (timeMs < nowMs - ageSecondsMax * 1_000) {
    throw refused(`Recorded-At may be at most ${ageSecondsMax} s old (recordedAgeSecondsMax).`);
  }
  if (timeMs > nowMs + aheadSecondsMax * 1_000) {
    throw refused(`Recorded-At may be at most ${aheadSecondsMax} s ahead.`);
  }
  return timeMs;
}
