/** Reports of benchmarks, in `bench/report`. */

import { parse } from 'csv-parse/sync';
import { expect, it } from 'vitest';
import { reportText, resultsCsv } from '../../bench/report/write.ts';
import type { Report } from '../../bench/result.ts';

const report: Report = {
  startedAt: '2026-01-02T03:04:05.000Z',
  machine: { CPU: 'some', Node: '20' },
  benchmarks: [
    { name: 'heartbeat', about: 'Is anybody there?' },
    { name: 'disk', about: 'Nothing was measured.' },
  ],
  results: [1, 2].map((shards) => ({
    benchmark: 'heartbeat',
    workload: 'heartbeat, "bare"',
    subject: 'fleetpost',
    conditions: { shards, connections: 64 },
    rounds: 5,
    figures: { cpuMicrosecondsPerOperation: 25.125 * shards },
    ratio: { to: 'nginx', figure: 'cpuMicrosecondsPerOperation', value: 0.5 },
  })),
  skipped: [{ benchmark: 'peers', subject: 'Redis', reason: 'it is not installed' }],
};

it('the text of a report has the machine, each table under what it shows, and what was not measured', () => {
  const text = reportText(report);
  expect(text).toMatch(
    /^Fleetpost benchmark, 2026-01-02.*\nMedians of 5 rounds\nCPU: +some\nNode: +20\n\nheartbeat\nIs /,
  );
  expect(text).toMatch(
    /2 shards +50\.3 +0\.50 × nginx\n\nNot measured\npeers, Redis: it is not installed\n$/,
  );
  expect(text).not.toContain('Nothing was measured.');
});

it('the CSV of a report has each result with all its figures', () => {
  const [first, second, ...others] = parse(resultsCsv(report), { columns: true }) as Record<string, string>[];
  expect(others).toEqual([]);
  expect(first).toMatchObject({
    workload: 'heartbeat, "bare"',
    shards: '1',
    rounds: '5',
    p50Milliseconds: '',
  });
  expect(second).toMatchObject({ cpuMicrosecondsPerOperation: '50.25', ratio: '0.5', ratioTo: 'nginx' });
});
