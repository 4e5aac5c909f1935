/** Verdicts of `npm run test:bench`, in `outcome.ts`. */

import { expect, it } from 'vitest';
import type { Report, Skipped } from '../../bench/result.ts';
import { outcomeOf } from './outcome.ts';

const benchmark = 'heartbeat';
const result = { benchmark, workload: benchmark, subject: 'fleetpost', conditions: {}, rounds: 1 };
const measured = { ...result, figures: { p50Milliseconds: 0.5, p99Milliseconds: 0 } };

function reportOf(results: Report['results'], ...skipped: Omit<Skipped, 'benchmark'>[]): Report {
  const all = skipped.map((one) => ({ benchmark, ...one }));
  return { startedAt: '', machine: {}, benchmarks: [], results, skipped: all };
}

it('figures and an end with 0 pass; a subject that is missing is named', () => {
  const report = reportOf([measured], { subject: 'nginx', reason: 'it is not installed' });
  const without = ['nginx: it is not installed'];
  expect(outcomeOf({ exitCode: 0, report })).toEqual({ state: 'passed', figures: 2, without });
});

it('what lacks a program is not run, and has not passed', () => {
  const report = reportOf([], { subject: 'all', reason: 'wrk is not installed' });
  expect(outcomeOf({ exitCode: 0, report })).toEqual({ state: 'not run', reason: 'wrk is not installed' });
});

it.each([
  [
    'an end with 1',
    1,
    reportOf([], { subject: 'all', reason: 'it failed: no answer' }),
    'it failed: no answer',
  ],
  ['an end with 1, with figures', 1, reportOf([measured]), 'ended with 1'],
  ['an end by a signal', null, undefined, 'ended with null'],
  ['no report', 0, undefined, 'no figure'],
  ['no result', 0, reportOf([]), 'no figure'],
  ['a result without a figure', 0, reportOf([measured, { ...result, figures: {} }]), 'heartbeat, fleetpost'],
  [
    'nothing but zeros',
    0,
    reportOf([{ ...result, figures: { p50Milliseconds: 0 } }]),
    'heartbeat, fleetpost',
  ],
  [
    'a figure that is no number',
    0,
    reportOf([{ ...result, figures: { operationsPerSecond: 1, p50Milliseconds: Number.NaN } }]),
    'heartbeat, fleetpost',
  ],
  [
    'a ratio that is no number',
    0,
    reportOf([{ ...measured, ratio: { to: 'nginx', figure: 'p99Milliseconds', value: Number.NaN } }]),
    'heartbeat, fleetpost',
  ],
])('%s fails', (_, exitCode, report, reason) => {
  const read = report && (JSON.parse(JSON.stringify(report)) as Report);
  const failed = { state: 'failed', reason: expect.stringContaining(reason) };
  expect(outcomeOf({ exitCode, report: read })).toEqual(failed);
});
