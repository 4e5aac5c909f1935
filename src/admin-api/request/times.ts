import { Type } from 'typebox';
import { ApiError } from '../../core/errors.ts';
import { nullable } from './documents.ts';

/** RFC 3339 with a time zone, without which a time is ambiguous. Seconds are optional. */
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

export function timeText(description: string) {
  return Type.String({ pattern: timePattern.source, description: `${description} ISO 8601 with its zone.` });
}

/** `name` is that of the parameter. @throws ApiError bad_request, also for a date that does not exist. */
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

/** ISO 8601 with a time zone, without which a time is ambiguous. */
const isoTime = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$';
export const expiresAt = Type.Optional(
  nullable('string', { pattern: isoTime, description: 'Absent or null: never.' }),
);

/** Returns null for never. @throws ApiError invalid_body for an invalid or a past time. */
export function expiryOf(text: string | null | undefined): number | null {
  if (text === undefined || text === null) return null;
  const timeMs = Date.parse(text);
  if (timeMs > Date.now()) return timeMs;
  throw new ApiError('invalid_body', { errors: [{ path: '/expires_at', msg: 'must be in the future' }] });
}
