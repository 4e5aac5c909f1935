import { expect, it } from 'vitest';
import { actionHealth } from '../../../../src/console/screens/actions/health.ts';
import type { ActionDocument } from '../../../../src/contract/action.ts';

const well = {
  enabled: true,
  held: null,
  failures: 0,
  behind: 0,
  last_error: null,
  dead_letters: 0,
  devices_behind: 0,
  devices_blocked: 0,
} as unknown as ActionDocument;
const lastError = { code: 'thrown', msg: 'no' } as unknown as ActionDocument['last_error'];

it.each<[string, Partial<ActionDocument>, RegExp | undefined]>([
  ['active: running', {}, undefined],
  ['active: running', { behind: 9_999 }, undefined],
  ['warn: behind', { behind: 12_345 }, /^12,345 positions/],
  ['warn: dead letters', { dead_letters: 1 }, /^1 run has failed/],
  ['warn: devices wait', { dead_letters: 2, devices_behind: 3 }, /^Records of 3 devices/],
  ['warn: failing', { failures: 1, last_error: lastError, behind: 20_000 }, /^1 failed attempt since/],
  [
    'warn: devices wait',
    { devices_blocked: 1, failures: 1, last_error: lastError },
    /records of 1 device wait:/,
  ],
  ['bad: held: rate limit', { held: 'limited', devices_blocked: 1 }, /break that loop/],
  ['disabled: disabled', { enabled: false, held: 'disk_full' }, /no notice/],
])('%s is the worst of %o', (text, of, advice) => {
  const health = actionHealth({ ...well, ...of });
  expect(`${health.mark}: ${health.word}`).toBe(text);
  if (advice === undefined) expect(health.advice).toBeUndefined();
  else expect(health.advice).toMatch(advice);
});
