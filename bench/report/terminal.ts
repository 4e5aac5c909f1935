import type { Result } from '../result.ts';
import {
  conditionsText,
  figure,
  figureKeys,
  quantities,
  ratioText,
  sharedConditionsText,
  varyingConditions,
} from './wording.ts';

interface Column {
  title: string;
  cells: string[];
  isNumber: boolean;
}

/** The results of one benchmark, aligned for a terminal; columns without a value fall away. */
export function terminalTable(results: readonly Result[]): string {
  const varying = varyingConditions(results);
  const text = (title: string, cellOf: (result: Result) => string): Column => ({
    title,
    cells: results.map(cellOf),
    isNumber: false,
  });
  const columns: Column[] = [
    text('Workload', ({ workload }) => workload),
    text('Subject', ({ subject }) => subject),
    text('Conditions', ({ conditions }) => conditionsText(conditions, varying)),
    ...figureKeys.map((key): Column => {
      const { label, unit } = quantities[key];
      const cells = results.map(({ figures }) => (figures[key] === undefined ? '' : figure(figures[key])));
      return { title: `${label} ${unit}`, cells, isNumber: true };
    }),
    text('Ratio', ({ ratio }) => ratioText(ratio)),
  ].filter(({ cells }) => cells.some((cell) => cell !== ''));
  const lines = [-1, ...results.keys()].map((row) =>
    columns.map((column) => aligned(column, row < 0 ? column.title : (column.cells[row] ?? ''))).join('  '),
  );
  const shared = sharedConditionsText(results);
  return [...(shared === '' ? [] : [`All: ${shared}.`]), ...lines.map((line) => line.trimEnd())].join('\n');
}

function aligned({ title, cells, isNumber }: Column, cell: string): string {
  const width = Math.max(title.length, ...cells.map(({ length }) => length));
  return isNumber ? cell.padStart(width) : cell.padEnd(width);
}
