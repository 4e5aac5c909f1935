import { Type } from 'typebox';
import { ApiError } from '../core/errors.ts';

/** RFC 3339, with a zone: a time without one would be another on each machine. */
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

export function timeText(description: string) {
  return Type.String({ pattern: timePattern.source, description: `${description} ISO 8601 with its zone.` });
}

/** @throws ApiError bad_request for a day that no calendar has. */
export function parseTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new ApiError('bad_request', { msg: `${name} is not a time.` });
  return ms;
}
