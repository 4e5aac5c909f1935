import { Type } from 'typebox';
import { ApiError } from '../../core/errors.ts';
import { nullable } from './documents.ts';

/** RFC 3339, with a zone: a time without one would be another on each machine. Seconds may be left out. */
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

export function timeText(description: string) {
  return Type.String({ pattern: timePattern.source, description: `${description} ISO 8601 with its zone.` });
}

/** `name` is that of the parameter. @throws ApiError bad_request, also for a day that no calendar has. */
export function parseTime(name: string, text: string): number;
export function parseTime(name: string, text: string | undefined): number | undefined;
export function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = timePattern.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs) || timeMs < 0) {
    throw new ApiError('bad_request', { msg: `${name} is a time like 2026-01-31T08:00:00Z.` });
  }
  return timeMs;
}

export function timeTextOf(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}

/** ISO 8601 with a time zone: a date alone would be another moment for everybody. */
const isoTime = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$';
export const expiresAt = Type.Optional(
  nullable('string', { pattern: isoTime, description: 'Absent or null: never.' }),
);

/** Null for never. @throws ApiError invalid_body for what is no time, or is past. */
export function expiryOf(text: string | null | undefined): number | null {
  if (text === undefined || text === null) return null;
  const timeMs = Date.parse(text);
  if (timeMs > Date.now()) return timeMs;
  throw new ApiError('invalid_body', { errors: [{ path: '/expires_at', msg: 'must be a time to come' }] });
}
