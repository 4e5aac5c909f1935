import type { ForwarderDocument } from '../../../contract/forwarder.ts';

type State = ForwarderDocument['state'] | 'enabled';

const marks: Readonly<Record<State, readonly [string, string]>> = {
  enabled: ['is-acked', 'enabled'],
  running: ['is-acked', 'running'],
  backing_off: ['is-bad', 'retrying'],
  dead_letters_full: ['is-bad', 'dead letters full'],
  held: ['is-warn', 'held'],
  paused: ['is-disabled', 'paused'],
};

/** The state of a forwarder or a consumer; where there is little room its mark alone. */
export function ReaderState({ state }: { state: State }) {
  const [mark, word] = marks[state];
  return (
    <span class={`state ${mark}`}>
      <span class="word">{word}</span>
    </span>
  );
}
