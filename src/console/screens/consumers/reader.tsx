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

/** The state of a forwarder or a consumer, with how many records it was refused; where there is little room its mark alone. */
export function ReaderState({ state, refused = 0 }: { state: State; refused?: number }) {
  const [mark, word] =
    state === 'running' && refused > 0
      ? ['is-warn', `running, ${refused.toLocaleString('en')} refused`]
      : marks[state];
  return (
    <span class={`state ${mark}`}>
      <span class="word">{word}</span>
    </span>
  );
}

/** From here on a reader of records that works is not behind. */
const manyPositions = 10_000;
const manySeconds = 600;

/** How far a reader is behind: `3 h, 65,273 records`. */
interface Lag {
  behind: number;
  seconds_behind: number;
}

/** In words, the age of the oldest record that waits first: it says more than how many there are. */
function lagText({ behind, seconds_behind }: Lag): string {
  if (behind === 0) return 'nothing waits';
  const records = `${behind.toLocaleString('en')} ${behind === 1 ? 'record' : 'records'}`;
  return seconds_behind < 1 ? records : `${spanText(seconds_behind * 1_000)}, ${records}`;
}

/** Says that a reader which works would not be so far behind. */
export function isFarBehind({ behind, seconds_behind }: Lag): boolean {
  return behind > manyPositions || seconds_behind > manySeconds;
}

/** How far a reader of the log is behind. The log has the records of all fleets. */
export function Behind({ lag }: { lag: Lag }) {
  const tone = lag.behind === 0 ? 'faint' : isFarBehind(lag) ? 'warn strong' : '';
  return (
    <span class={tone} title="Age of the oldest, and number, of the records in the log that it has not read">
      {lagText(lag)}
    </span>
  );
}

/** Records that retention removed before they were read. */
export function LostRecords({ count }: { count: number }) {
  return <span class={count > 0 ? 'bad strong' : 'faint'}>{count.toLocaleString('en')}</span>;
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
      {...(!enabled && { kind: 'main' })}
      onClick={change}
      unless={isBusy ? 'On its way' : undefined}
      title={error?.message ?? `${verb} ${name}`}
    >
      {error ? 'Failed; again' : verb}
    </Act>
  );
}
