import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Report } from '../result.ts';
import { renderHtml } from './html.ts';

/** Writes `results.json` and `report.html` into a folder, which is made. */
export function writeReport(report: Report, folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(folder, 'report.html'), renderHtml(report));
}
