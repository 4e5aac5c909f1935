import type { CheckFindings } from './findings.ts';
import { sentStamp } from './ledger-entries.ts';

/**
 * Holds what one device was answered against its records in the log, by their stamps. A device sends in its order, one
 * request at a time, and its clock never stands still: so the log must have the same stamps, in growing order, each once;
 * of those in doubt, any. `late`: stamps whose order is not known.
 */
export function checkSends(
  id: string,
  ledger: Iterable<number>,
  logged: Iterable<number>,
  findings: Pick<CheckFindings, 'note'>,
  late?: ReadonlySet<number>,
): void {
  const answered = new Set<number>();
  const doubted = new Set<number>();
  for (const value of ledger) {
    const { stamp, isDoubtful } = sentStamp(value);
    (isDoubtful ? doubted : answered).add(stamp);
  }
  const seen = new Set<number>();
  let last = -1;
  for (const stamp of logged) {
    if (seen.has(stamp)) {
      findings.note('doubled', `the reading ${stamp} of ${id}`);
      continue;
    }
    seen.add(stamp);
    if (!answered.has(stamp) && !doubted.has(stamp))
      findings.note('unknown', `the reading ${stamp} of ${id}`);
    if (late?.has(stamp)) continue;
    if (stamp < last) findings.note('out_of_order', `the reading ${stamp} of ${id}, behind ${last}`);
    last = Math.max(last, stamp);
  }
  for (const stamp of answered) if (!seen.has(stamp)) findings.note('lost', `the reading ${stamp} of ${id}`);
}
