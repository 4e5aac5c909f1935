import type { Report } from '../../bench/result.ts';

/** End of a benchmark that ran by itself. */
export interface Ended {
  /** Null after a signal. */
  exitCode: number | null;
  /** Undefined where none was written. */
  report: Report | undefined;
}

export type Outcome =
  /** `without` are the subjects that it did not measure, each with its reason. */
  | { state: 'passed'; figures: number; without: readonly string[] }
  | { state: 'not run'; reason: string }
  | { state: 'failed'; reason: string };

/** Judges whether it ended well and gave figures, and not what they are. */
export function outcomeOf({ exitCode, report }: Ended): Outcome {
  const skipped = report?.skipped ?? [];
  const whole = skipped.find(({ subject }) => subject === 'all');
  if (exitCode !== 0) return { state: 'failed', reason: whole?.reason ?? `it ended with ${exitCode}` };
  if (whole !== undefined) return { state: 'not run', reason: whole.reason };
  const results = report?.results ?? [];
  if (results.length === 0) return { state: 'failed', reason: 'it gave no figure' };
  for (const { workload, subject, figures, ratio } of results) {
    const values = [...Object.values(figures), ...(ratio === undefined ? [] : [ratio.value])];
    // JSON has null for what is no number.
    const isGiven = values.every((value) => Number.isFinite(value)) && values.some((value) => value > 0);
    if (!isGiven)
      return { state: 'failed', reason: `${workload}, ${subject}: ${JSON.stringify({ figures, ratio })}` };
  }
  const figures = results.reduce((sum, result) => sum + Object.keys(result.figures).length, 0);
  return { state: 'passed', figures, without: skipped.map(({ subject, reason }) => `${subject}: ${reason}`) };
}
