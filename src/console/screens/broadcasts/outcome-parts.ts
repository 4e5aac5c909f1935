import type { BroadcastDocument, BroadcastOutcomesDocument } from '../../../contract/broadcast.ts';

/** What may have become of a mail on one device, as one asks for it. */
export interface OutcomePart {
  name: string;
  /** States of the mail that are this; none: it was not queued. */
  states: readonly (keyof BroadcastOutcomesDocument)[];
  tone: 'good' | 'waits' | 'bad' | 'other';
  /** Shown also where there is none. */
  isAlways?: boolean;
}

export const outcomeParts: readonly OutcomePart[] = [
  { name: 'Acknowledged', states: ['acked'], tone: 'good', isAlways: true },
  { name: 'Waiting', states: ['queued', 'delayed'], tone: 'waits', isAlways: true },
  { name: 'Rejected', states: ['rejected'], tone: 'bad', isAlways: true },
  { name: 'Expired', states: ['expired'], tone: 'bad' },
  { name: 'Requeued too often', states: ['over_requeued'], tone: 'bad' },
  { name: 'Mailbox full', states: ['mailbox_full'], tone: 'bad' },
  { name: 'Not queued', states: [], tone: 'bad' },
  { name: 'Withdrawn', states: ['withdrawn'], tone: 'other' },
  { name: 'Replaced', states: ['replaced'], tone: 'other' },
  { name: 'Not known any more', states: ['unknown'], tone: 'other' },
];

export interface CountedPart extends OutcomePart {
  count: number;
}

/** The parts of a broadcast with their numbers. Until its mails are counted, what is queued waits. */
export function countedParts(
  { queued, refused }: Pick<BroadcastDocument, 'queued' | 'refused'>,
  outcomes: BroadcastOutcomesDocument | undefined,
): CountedPart[] {
  const countOf = ({ states }: OutcomePart): number => {
    if (states.length === 0) return refused;
    if (outcomes === undefined) return states.includes('queued') ? queued : 0;
    return states.reduce((sum, state) => sum + outcomes[state], 0);
  };
  return outcomeParts.map((part) => ({ ...part, count: countOf(part) }));
}

/** Sums up a broadcast that was queued to all, for a list: how many it failed first, then how many have it before them. */
export function outcomeSummary(
  broadcast: Pick<BroadcastDocument, 'queued' | 'refused'>,
  outcomes: BroadcastOutcomesDocument,
): { tone: OutcomePart['tone']; text: string; more: string } {
  const parts = countedParts(broadcast, outcomes);
  const sum = (tone: OutcomePart['tone']): number =>
    parts.reduce((total, part) => total + (part.tone === tone ? part.count : 0), 0);
  const number = (count: number): string => count.toLocaleString('en');
  const [bad, waits, other] = [sum('bad'), sum('waits'), sum('other')];
  const waitText = `${number(waits)} ${waits === 1 ? 'waits' : 'wait'}`;
  if (bad > 0) return { tone: 'bad', text: `${number(bad)} failed`, more: waits > 0 ? `, ${waitText}` : '' };
  if (waits > 0) return { tone: 'waits', text: waitText, more: '' };
  if (other > 0) return { tone: 'other', text: 'ended', more: '' };
  return { tone: 'good', text: 'all acknowledged', more: '' };
}
