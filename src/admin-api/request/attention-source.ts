import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import { durationText } from '../../domain/duration-text.ts';

/** Lists what needs attention of one feature in a fleet. */
export type AttentionSource = (fleetId: string) => Promise<AttentionItem[]>;

/** Lag that a reader at work does not reach. */
export const positionsBehindMax = 10_000;

/** One thing that is wrong with a reader of the logs, as the words behind its name. */
export interface ReaderTrouble {
  kind: AttentionItem['kind'];
  clause: string;
  count?: number;
}

/** Says in one item what is wrong with a reader of the logs, the worst first; nothing if nothing is. */
export function attentionToReader(
  what: 'action' | 'forwarder' | 'consumer',
  name: string,
  troubles: readonly ReaderTrouble[],
): AttentionItem[] {
  const [first, ...others] = troubles;
  if (first === undefined) return [];
  const clauses = troubles.map(({ clause }) => clause).join('; it ');
  return [
    attentionItem(first.kind, `The ${what} ${name} ${clauses}.`, {
      name,
      count: first.count ?? null,
      also: others.map(({ kind }) => kind),
    }),
  ];
}

/** Says how far behind a reader is: the age of the oldest record that it has not read, and how many wait. */
export function behindClause({ seconds, records }: { seconds: number; records: number }): string {
  return `is ${durationText(seconds * 1_000)}, ${counted(records, 'record', 'records')} behind`;
}

/** Says what a reader of the logs has lost. */
export function lostClause(count: number): string {
  const before = count === 1 ? 'it before it was' : 'them before they were';
  return `has lost ${counted(count, 'record', 'records')}: retention removed ${before} read`;
}

/** Says how many dead letters a reader of the logs has. */
export function deadClause(count: number): string {
  return `has ${counted(count, 'dead letter', 'dead letters')}`;
}

function counted(count: number, one: string, more: string): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : more}`;
}

/** A number as sentences have it: `1,204`, or `1,000 or more` where not all were counted. */
export function countedText(count: number, isAll: boolean): string {
  return `${count.toLocaleString('en')}${isAll ? '' : ' or more'}`;
}
