import { Type } from 'typebox';
import { ApiError } from '../../core/errors.ts';

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

export function textOf(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
