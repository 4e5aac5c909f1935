import type { Result } from '../result.ts';
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';
import { type Cell, table } from './table.ts';
import {
  conditionsText,
  figureKeys,
  quantities,
  ratioText,
  sharedConditionsText,
  varyingConditions,
} from './wording.ts';

/** Every figure of the results, and the conditions in which they differ; what they share stands above. */
export function resultsTable(results: readonly Result[]): Markup {
  const varying = varyingConditions(results);
  const shared = sharedConditionsText(results);
  const columns = [
    { label: 'Workload' },
    { label: 'Subject' },
    { label: 'Conditions' },
    ...figureKeys.map((key) => quantities[key]),
    { label: 'Ratio' },
  ];
  const rows = results.map(({ workload, subject, conditions, figures, ratio }): Cell[] => [
    workload,
    subject,
    conditionsText(conditions, varying),
    ...figureKeys.map((key) => figures[key]),
    ratioText(ratio),
  ]);
  const note = shared === '' ? undefined : markup`<p class="soft">All: ${shared}.</p>`;
  return markup`${note}${table(columns, rows)}`;
}
