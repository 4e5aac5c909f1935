import { timePattern } from '../../contract/document.ts';
import { ApiError } from '../../core/errors.ts';

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

/** A time as documents have it; null for none. */
export function timeTextOf(timeMs: number): string;
export function timeTextOf(timeMs: number | null | undefined): string | null;
export function timeTextOf(timeMs: number | null | undefined): string | null {
  return timeMs === undefined || timeMs === null ? null : new Date(timeMs).toISOString();
}

/** Returns null for never. @throws ApiError invalid_body for an invalid or a past time. */
export function expiryOf(text: string | null | undefined): number | null {
  if (text === undefined || text === null) return null;
  const timeMs = Date.parse(text);
  if (timeMs > Date.now()) return timeMs;
  throw new ApiError('invalid_body', { errors: [{ path: '/expires_at', msg: 'must be in the future' }] });
}
