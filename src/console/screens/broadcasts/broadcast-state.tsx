import type { BroadcastDocument } from '../../../contract/broadcast.ts';

const marks: Readonly<Record<BroadcastDocument['state'], string>> = {
  running: 'is-connected',
  held: 'is-warn',
  paused: 'is-queued',
  done: 'is-acked',
  cancelled: 'is-disabled',
};

/** The state of a broadcast, with its word also where there is little room. */
export function BroadcastMark({ broadcast: { state } }: { broadcast: Pick<BroadcastDocument, 'state'> }) {
  return <span class={`state ${marks[state]}`}>{state}</span>;
}
