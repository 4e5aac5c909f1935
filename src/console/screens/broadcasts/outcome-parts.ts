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
