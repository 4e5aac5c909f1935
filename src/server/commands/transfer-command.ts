import { InvalidArgumentError } from 'commander';
import { ApiError, OperatorError } from '../../core/errors.ts';
import type { CopyProgress } from '../../maintenance/copy/copy.ts';
import type { RowDigest } from '../../maintenance/copy/row-digest.ts';

/** True if a location is the URL of a database, not a file or folder. */
export function isUrl(location: string): boolean {
  return /^postgres(ql)?:\/\//.test(location);
}

/** Collects the values of an option that is repeated for each location. */
export function collectLocations(location: string, before: string[] = []): string[] {
  if (location === '') throw new InvalidArgumentError('It must not be empty.');
  return [...before, location];
}

/** Runs `act` with a progress report, and returns its duration. @throws OperatorError when a database fails. */
export async function transfer<A>(
  title: string,
  act: (progress: CopyProgress) => Promise<A>,
): Promise<{ answer: A; seconds: string }> {
  const { ProgressReport } = await import('../../maintenance/progress-report.ts');
  let report: InstanceType<typeof ProgressReport> | undefined;
  const progress: CopyProgress = {
    start: (records) => {
      report = new ProgressReport(title, records);
    },
    add: (records) => report?.add(records),
  };
  try {
    const answer = await act(progress);
    return { answer, seconds: report?.seconds ?? '0' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new OperatorError(
      'A database could not be reached or failed: see the line before. Nothing is lost. Run the same command again to continue.',
    );
  } finally {
    report?.end();
  }
}

/** Prints what was transferred, as a JSON document, or as lines with a summary. */
export function printTransferred(
  kinds: Iterable<readonly [kind: string, rows: RowDigest]>,
  isJson: boolean,
  summary: string,
): void {
  const all = [...kinds].map(([kind, { count: records, digest }]) => ({ kind, records, digest }));
  if (isJson) {
    console.log(JSON.stringify({ kinds: all }));
    return;
  }
  for (const { kind, records, digest } of all) {
    if (records > 0) console.log(`${String(records).padStart(12)}  ${digest.slice(0, 16)}  ${kind}`);
  }
  console.log(summary);
}
