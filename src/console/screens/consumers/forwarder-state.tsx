import type { ForwarderDocument } from '../../../contract/forwarder.ts';

const marks: Readonly<Record<ForwarderDocument['state'], readonly [string, string]>> = {
  running: ['is-acked', 'running'],
  backing_off: ['is-bad', 'retrying'],
  dead_letters_full: ['is-bad', 'dead letters full'],
  held: ['is-warn', 'held'],
  paused: ['is-disabled', 'paused'],
};

/** The state of a forwarder; where there is little room its mark alone. */
export function ForwarderState({ forwarder: { state } }: { forwarder: Pick<ForwarderDocument, 'state'> }) {
  const [mark, word] = marks[state];
  return (
    <span class={`state ${mark}`}>
      <span class="word">{word}</span>
    </span>
  );
}
