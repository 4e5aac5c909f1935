import type { Conditions, Figures, Result } from '../result.ts';
import { bars, barsHeight } from './chart/bars.ts';
import { chartFigure } from './chart/figure.ts';
import { lines, linesHeight, type Series } from './chart/lines.ts';
import { type PercentileRow, percentiles, percentilesHeight } from './chart/percentiles.ts';
import type { Subjects } from './chart/subjects.ts';
import type { Markup } from './markup.ts';
import { resultsTable } from './results-table.ts';
import { conditionsText, quantities, ratioText, sharedConditionsText, varyingConditions } from './wording.ts';

type Figured<K extends keyof Figures> = Result & { figures: Record<K, number> };

function having<K extends keyof Figures>(results: readonly Result[], ...keys: K[]): Figured<K>[] {
  return results.filter((result): result is Figured<K> =>
    keys.every((key) => Number.isFinite(result.figures[key])),
  );
}

/** Groups bars side by side: one workload under one set of conditions, whoever runs it and however durable. */
function comparisonKey({ workload, conditions }: Result): string {
  const { durability: _, ...rest } = conditions;
  return JSON.stringify([workload, Object.entries(rest).sort()]);
}

function grouped<T extends Result>(results: readonly T[], keyOf: (result: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const result of results) {
    const key = keyOf(result);
    const group = groups.get(key);
    if (group) group.push(result);
    else groups.set(key, [result]);
  }
  return [...groups.values()];
}

function caption(...parts: string[]): string {
  return parts.filter((part) => part !== '').join('. ');
}

/** Conditions that a comparison's label has to name. */
function labelConditions(results: readonly Result[]): (keyof Conditions)[] {
  return varyingConditions(results).filter((key) => key !== 'durability');
}

/** Bars of one figure, the subjects of a workload under each other. Nothing where no result has the figure. */
export function barFigure(
  title: string,
  key: 'cpuMicrosecondsPerOperation' | 'operationsPerSecond',
  results: readonly Result[],
  subjects: Subjects,
): Markup | undefined {
  const measured = having(results, key);
  if (measured.length === 0) return undefined;
  const labelled = labelConditions(measured);
  const groups = grouped(measured, comparisonKey).map((group) => ({
    label: group[0]?.workload ?? '',
    detail: conditionsText(group[0]?.conditions ?? {}, labelled),
    bars: group.map(({ subject, figures, ratio }) => ({
      subject,
      value: figures[key],
      note: ratio?.figure === key ? ratioText(ratio) : undefined,
    })),
  }));
  return chartFigure({
    title,
    caption: sharedConditionsText(measured),
    height: barsHeight(groups),
    drawing: bars(groups, quantities[key].unit, subjects),
    table: resultsTable(measured),
  });
}

/** p50 to p99.9 of every result that has them. */
export function percentileFigure(
  title: string,
  results: readonly Result[],
  subjects: Subjects,
): Markup | undefined {
  const measured = having(results, 'p50Milliseconds', 'p99Milliseconds', 'p999Milliseconds');
  if (measured.length === 0) return undefined;
  const labelled = labelConditions(measured);
  const rows = measured.map(
    ({ workload, subject, conditions, figures, ratio }): PercentileRow => ({
      label: workload,
      detail: [conditionsText(conditions, labelled), ratioText(ratio)].filter(Boolean).join(', '),
      subject,
      milliseconds: [figures.p50Milliseconds, figures.p99Milliseconds, figures.p999Milliseconds],
    }),
  );
  return chartFigure({
    title,
    caption: caption('A dot at p50, a ring at p99, a stroke at p99.9', sharedConditionsText(measured)),
    height: percentilesHeight(rows),
    drawing: percentiles(rows, subjects),
    table: resultsTable(measured),
  });
}

export interface Sweep {
  condition: 'shards' | 'devices';
  label: string;
  /** Fewest values for a line; with fewer, bars say as much. */
  valuesMin: number;
  /** Conditions that change along with it. */
  alongside: readonly (keyof Conditions)[];
  isLogarithmic: boolean;
}

/** Fleetpost's CPU per operation over one condition: a line for each workload measured at enough values. */
export function sweepFigure(
  title: string,
  sweep: Sweep,
  results: readonly Result[],
  subjects: Subjects,
): Markup | undefined {
  const { condition, valuesMin, alongside } = sweep;
  const key = ({ workload, conditions }: Result): string => {
    const rest = Object.entries(conditions).filter(
      ([name]) => name !== condition && !(alongside as readonly string[]).includes(name),
    );
    return JSON.stringify([workload, rest.sort()]);
  };
  const measured = having(results, 'cpuMicrosecondsPerOperation').filter(
    ({ subject, conditions }) => subject === 'fleetpost' && conditions[condition] !== undefined,
  );
  const swept = grouped(measured, key).filter(
    (group) => new Set(group.map(({ conditions }) => conditions[condition])).size >= valuesMin,
  );
  if (swept.length === 0) return undefined;
  const all = swept.flat();
  const labelled = labelConditions(all).filter((name) => name !== condition && !alongside.includes(name));
  const series = swept.map((group): Series => {
    const { workload = '', subject = '', conditions = {} } = group[0] ?? {};
    const words = [workload, conditionsText(conditions, labelled)];
    return {
      label: words.filter((word) => word !== '').join(', '),
      subject,
      points: group
        .map(({ conditions, figures }) => ({
          x: conditions[condition] ?? 0,
          y: figures.cpuMicrosecondsPerOperation,
        }))
        .sort((a, b) => a.x - b.x),
    };
  });
  const axes = {
    xLabel: sweep.label,
    xIsLogarithmic: sweep.isLogarithmic,
    yUnit: quantities.cpuMicrosecondsPerOperation.unit,
  };
  return chartFigure({
    title,
    caption: caption('Server CPU per request', sharedConditionsText(all)),
    height: linesHeight,
    drawing: lines(series, axes, subjects),
    table: resultsTable(all),
  });
}
