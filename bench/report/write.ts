import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'csv-stringify/sync';
import type { Report } from '../result.ts';
import { terminalTable } from './terminal.ts';
import { conditionKeys, figureKeys } from './wording.ts';

/** Writes `report.txt`, `results.csv` and `results.json` into a folder, which is made. */
export function writeReport(report: Report, folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.txt'), reportText(report));
  writeFileSync(join(folder, 'results.csv'), resultsCsv(report));
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
}

/** The report as a person reads it: the machine, and of each benchmark what it shows and its table. */
export function reportText({ startedAt, machine, benchmarks, results, skipped }: Report): string {
  const facts = Object.entries(machine).map(([name, value]) => `${`${name}:`.padEnd(18)}${value}`);
  const rounds = Math.max(0, ...results.map((result) => result.rounds));
  const head = [`Fleetpost benchmark, ${startedAt}`, `Medians of ${rounds} rounds`, ...facts].join('\n');
  const tables = benchmarks.flatMap(({ name, about }) => {
    const own = results.filter(({ benchmark }) => benchmark === name);
    return own.length === 0 ? [] : [`${name}\n${about}\n${terminalTable(own)}`];
  });
  const missing = skipped.map(({ benchmark, subject, reason }) => `${benchmark}, ${subject}: ${reason}`);
  const parts = [head, ...tables, ...(missing.length === 0 ? [] : [`Not measured\n${missing.join('\n')}`])];
  return `${parts.join('\n\n')}\n`;
}

/** A line for each result, a column for each condition and each figure, unrounded. */
export function resultsCsv({ results }: Report): string {
  const rows = results.map(({ conditions, figures, ratio, ...result }) => ({
    ...result,
    ...conditions,
    ...figures,
    ...(ratio && { ratio: ratio.value, ratioTo: ratio.to, ratioFigure: ratio.figure }),
  }));
  const names = ['benchmark', 'workload', 'subject', 'rounds', ...conditionKeys, ...figureKeys];
  return stringify(rows, { header: true, columns: [...names, 'ratio', 'ratioTo', 'ratioFigure'] });
}
