import type { ForwarderDocument } from '../../../contract/forwarder.ts';
import type { Path } from '../../../contract/routes/path.ts';
import { Act } from '../../parts/act.tsx';
import { call } from '../../server/client.ts';
import { spanText } from '../../server/clock.ts';
import { useSubmit } from '../../server/submit.ts';

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

/** From here on a reader of records that works is not behind. */
const manyPositions = 10_000;
const manySeconds = 600;

/** How far behind a reader is, in positions of the logs or in the age of the oldest record that waits. */
export function Behind(lag: { positions: number } | { seconds: number }) {
  const isMuch = 'positions' in lag ? lag.positions > manyPositions : lag.seconds > manySeconds;
  const amount = 'positions' in lag ? lag.positions : lag.seconds;
  const text = 'positions' in lag ? lag.positions.toLocaleString('en') : spanText(lag.seconds * 1_000);
  return <span class={amount === 0 ? 'faint' : isMuch ? 'warn strong' : ''}>{text}</span>;
}

/** Positions that retention removed before they were read. */
export function LostPositions({ positions }: { positions: number }) {
  return <span class={positions > 0 ? 'bad strong' : 'faint'}>{positions.toLocaleString('en')}</span>;
}

export interface PauseReaderProps {
  /** Path of the forwarder or consumer in the API. */
  path: Path<'/fleets/{fleet_id}/consumers/{name}' | '/fleets/{fleet_id}/forwarders/{name}'>;
  reader: { name: string; enabled: boolean };
  onDone: () => void;
}

/** Pauses a forwarder or a consumer, which keeps its place in the logs, or lets it go on from there. */
export function PauseReader({ path, reader: { name, enabled }, onDone }: PauseReaderProps) {
  const { error, isBusy, submit } = useSubmit();
  const change = (): void =>
    void submit(() => call('PATCH', path, { body: { enabled: !enabled } })).then(onDone);
  const verb = enabled ? 'Pause' : 'Resume';
  return (
    <Act
      scope="admin"
      kind={enabled ? 'plain' : 'main'}
      onClick={change}
      unless={isBusy ? 'On its way' : undefined}
      title={error?.message ?? `${verb} ${name}`}
    >
      {error ? 'Failed; again' : verb}
    </Act>
  );
}
