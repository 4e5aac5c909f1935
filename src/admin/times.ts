import { Type } from 'typebox';
import { ApiError } from '../core/errors.ts';

/** ISO 8601 with a time zone: without one a time means another one on another machine. */
const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

export function timeText(description: string) {
  return Type.String({ pattern: timePattern.source, description: `${description} ISO 8601 with its zone.` });
}

/** `name` is that of the parameter. @throws ApiError bad_request. */
export function parseTime<T extends string | undefined>(
  name: string,
  given: T,
): T extends string ? number : number | undefined;
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
