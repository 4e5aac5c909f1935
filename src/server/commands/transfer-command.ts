import { InvalidArgumentError } from 'commander';
import { ApiError, OperatorError } from '../../core/errors.ts';
import type { CopyProgress } from '../../maintenance/copy/copy.ts';
import type { RowDigest } from '../../maintenance/copy/row-digest.ts';

/** Whether a place is a database, and no file or folder. */
export function isUrl(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

/** The values of an option that is given again for each further place. */
export function collectPlaces(place: string, before: string[] = []): string[] {
  if (place === '') throw new InvalidArgumentError('It names nothing.');
  return [...before, place];
}

/** Tells how far it is, and answers how long it took. @throws OperatorError where databases do not do it */
export async function transfer<A>(
  title: string,
  act: (progress: CopyProgress) => Promise<A>,
): Promise<{ answer: A; seconds: string }> {
  const { MoveReport } = await import('../../maintenance/reshard-folder/move-report.ts');
  let report: InstanceType<typeof MoveReport> | undefined;
  const progress: CopyProgress = {
    start: (records) => {
      report = new MoveReport(title, records);
    },
    add: (records) => report?.add(records),
  };
  try {
    const answer = await act(progress);
    return { answer, seconds: report?.seconds ?? '0' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new OperatorError(
      'A database could not be reached, or did not do what it was asked: the line before says why. Nothing is lost: give the same command again, which goes on where this one has ended.',
    );
  } finally {
    report?.end();
  }
}

/** What was transferred, as a document; or as lines, and what is to be said of it all. */
export function printTransferred(
  kinds: Iterable<readonly [kind: string, rows: RowDigest]>,
  isJson: boolean,
  said: string,
): void {
  const all = [...kinds].map(([kind, { count: records, digest }]) => ({ kind, records, digest }));
  if (isJson) {
    console.log(JSON.stringify({ kinds: all }));
    return;
  }
  for (const { kind, records, digest } of all) {
    if (records > 0) console.log(`${String(records).padStart(12)}  ${digest.slice(0, 16)}  ${kind}`);
  }
  console.log(said);
}
