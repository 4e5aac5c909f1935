import { ApiError } from '../core/errors.ts';

/** ISO 8601 with a time zone: without one a time means another one on another machine. */
const pattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** `name` is that of the parameter. @throws ApiError bad_request. */
export function parseTime(name: string, text: string): number {
  const timeMs = pattern.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs) || timeMs < 0) {
    throw new ApiError('bad_request', { msg: `${name} is a time like 2026-01-31T08:00:00Z.` });
  }
  return timeMs;
}

export function textOf(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
