import type { BenchmarkOptions } from './benchmark.ts';
import { median } from './median.ts';
import { conditionsText } from './report/wording.ts';
import type { Conditions, Figures, Result } from './result.ts';

/** One line of a table: something that is measured once in every round. */
export interface Lane {
  workload: string;
  subject: string;
  conditions: Conditions;
  /** Measures one round. */
  measure(): Promise<Figures>;
  /** Another lane of the same run: the ratio to it is reported, of CPU per operation unless said otherwise. */
  compareWith?: { lane: Lane; name: string; figure?: keyof Figures };
}

/** Ratio of what two lanes needed in the same round. */
function ratioOf(lane: Lane, rounds: ReadonlyMap<Lane, Figures[]>): Result['ratio'] {
  if (lane.compareWith === undefined) return undefined;
  const { lane: other, name, figure = 'cpuMicrosecondsPerOperation' } = lane.compareWith;
  const own = rounds.get(lane) ?? [];
  const others = rounds.get(other) ?? [];
  const ratios = own.map(
    (figures, round) => (figures[figure] ?? Number.NaN) / (others[round]?.[figure] ?? Number.NaN),
  );
  return { to: name, figure, value: median(ratios) };
}

/** The median of each figure by itself. */
function medians(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {}) as (keyof Figures)[];
  return Object.fromEntries(
    names.map((name) => [name, median(rounds.map((figures) => figures[name] ?? Number.NaN))]),
  );
}

/** A round that does not count, for code to be compiled: a server needs up to three times the CPU before. */
export async function warmUp(lanes: readonly Lane[], { size, progress }: BenchmarkOptions): Promise<void> {
  if (size === 'short') return;
  progress('warming up');
  for (const lane of lanes) await lane.measure();
}

/**
 * Each round measures every lane once, in turn, so that whatever slows the machine down for a while slows
 * all of them: a ratio is taken within each round, and the median over the rounds is what counts.
 */
export async function interleave(
  lanes: readonly Lane[],
  { rounds, progress }: BenchmarkOptions,
): Promise<Omit<Result, 'benchmark'>[]> {
  const measured = new Map<Lane, Figures[]>(lanes.map((lane) => [lane, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const [index, lane] of lanes.entries()) {
      const conditions = conditionsText(lane.conditions, [
        'shards',
        'nodes',
        'connections',
        'callers',
        'devices',
      ]);
      const name = [lane.workload, lane.subject, conditions].join(', ');
      progress(`round ${round} of ${rounds}, ${index + 1} of ${lanes.length}: ${name}`);
      const figures = await lane.measure();
      measured.get(lane)?.push(figures);
    }
  }
  return lanes.map((lane) => {
    const { workload, subject, conditions } = lane;
    const ratio = ratioOf(lane, measured);
    const figures = medians(measured.get(lane) ?? []);
    return { workload, subject, conditions, rounds, figures, ...(ratio && { ratio }) };
  });
}
