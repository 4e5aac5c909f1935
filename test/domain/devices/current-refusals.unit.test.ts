import { expect, it } from 'vitest';
import { reasonOf } from '../../../src/domain/devices/current-refusals.ts';
import type { Refusal } from '../../../src/domain/devices/refusals.ts';

const nowMs = 10_000_000;
const refusal = (more: Partial<Refusal>): Refusal => ({
  route: 'POST /v1/datapoint/:schema_name',
  code: 'schema_mismatch',
  msg: '',
  count: 1,
  firstMs: nowMs - 60_000,
  lastMs: nowMs - 60_000,
  ...more,
});

it('a refusal holds for an hour, until the same is accepted', () => {
  expect(reasonOf(refusal({}), nowMs)).toBe('schema_mismatch');
  expect(reasonOf(refusal({ lastMs: nowMs - 3_600_001 }), nowMs)).toBeUndefined();
  expect(reasonOf(refusal({ acceptedMs: nowMs - 59_999 }), nowMs)).toBeUndefined();
  expect(reasonOf(refusal({ acceptedMs: nowMs - 60_001 }), nowMs)).toBe('schema_mismatch');
  const unauthorized = { code: 'unauthorized' } as const;
  expect(reasonOf(refusal({ ...unauthorized, detail: 'device_secret_incorrect' }), nowMs)).toBe(
    'wrong_secret',
  );
  expect(reasonOf(refusal({ ...unauthorized, detail: 'device_disabled' }), nowMs)).toBe('disabled');
  expect(reasonOf(refusal({ code: 'schema_not_found' }), nowMs)).toBe('other');
});

it('what senders of mail are refused is none of its own', () => {
  expect(reasonOf(refusal({ code: 'mailbox_full' }), nowMs)).toBeUndefined();
});

it('requests over a rate are refused once they are a tenth of the last minutes, whatever was accepted since', () => {
  const limited = (requests: Refusal['requests'], more: Partial<Refusal> = {}) =>
    reasonOf(refusal({ code: 'rate_limited', requests, acceptedMs: nowMs, ...more }), nowMs);
  expect(limited({ limited: 1, accepted: 9 })).toBe('rate_limited');
  expect(limited({ limited: 1, accepted: 10 })).toBeUndefined();
  expect(limited({ limited: 0, accepted: 0 })).toBeUndefined();
  expect(limited({ limited: 9, accepted: 1 }, { lastMs: nowMs - 600_001 })).toBeUndefined();
  // Of a lockout nothing is counted: the wrong secrets before it are what is refused.
  expect(limited(undefined)).toBeUndefined();
});
