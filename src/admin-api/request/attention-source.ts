import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';

/** Lists what needs attention of one feature in a fleet. */
export type AttentionSource = (fleetId: string) => Promise<AttentionItem[]>;

/** Lag that a reader at work does not reach. */
export const positionsBehindMax = 10_000;

/** Says what a reader of the logs has lost. */
export function lostOf(
  what: 'action' | 'forwarder' | 'consumer',
  name: string,
  count: number,
): AttentionItem {
  const sentence = `The ${what} ${name} has lost ${count} positions of the logs: retention removed them before it read them.`;
  return attentionItem(`${what}_lost`, sentence, { name, count });
}

/** Says how many dead letters a reader of the logs has. */
export function deadOf(what: 'action' | 'forwarder', name: string, count: number): AttentionItem {
  const sentence = `The ${what} ${name} has ${count} dead ${count === 1 ? 'letter' : 'letters'}.`;
  return attentionItem(`${what}_dead_letters`, sentence, { name, count });
}
