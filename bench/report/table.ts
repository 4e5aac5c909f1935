import { type Markup, markup } from './markup.ts';
import { figure } from './wording.ts';

export type Cell = string | number | undefined | Markup;

export interface Column {
  label: string;
  unit?: string;
}

/**
 * A figure for a column: the decimals that others have more are there and not seen, so that all decimal
 * points of the column stand under each other.
 */
function numberCell(value: number, decimals: number): Markup {
  const text = figure(value);
  const own = text.split('.')[1]?.length ?? 0;
  const padding = own === decimals ? '' : `${own === 0 ? '.' : ''}${'0'.repeat(decimals - own)}`;
  if (padding === '') return markup`<td class="number">${text}</td>`;
  return markup`<td class="number">${text}<span class="pad" aria-hidden="true">${padding}</span></td>`;
}

function decimalsOf(rows: readonly (readonly Cell[])[], column: number): number {
  const decimals = rows.map((row) => {
    const cell = row[column];
    return typeof cell === 'number' ? (figure(cell).split('.')[1]?.length ?? 0) : 0;
  });
  return Math.max(0, ...decimals);
}

/** Numbers to the right, text to the left; the first column names the row. Columns without a value fall away. */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): Markup {
  const used = columns.map((_, at) => rows.some((row) => row[at] !== undefined && row[at] !== ''));
  const isNumber = columns.map((_, at) => rows.some((row) => typeof row[at] === 'number'));
  const decimals = columns.map((_, at) => decimalsOf(rows, at));
  const head = columns.map(({ label, unit }, at) =>
    used[at]
      ? markup`<th scope="col"${isNumber[at] ? markup` class="number"` : undefined}>${label}${unit ? markup` <span class="unit">${unit}</span>` : undefined}</th>`
      : undefined,
  );
  const body = rows.map((row) => {
    const cells = row.map((cell, at) => {
      if (!used[at]) return undefined;
      if (typeof cell === 'number') return numberCell(cell, decimals[at] ?? 0);
      return at === 0 ? markup`<th scope="row">${cell}</th>` : markup`<td>${cell}</td>`;
    });
    return markup`<tr>${cells}</tr>`;
  });
  return markup`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
