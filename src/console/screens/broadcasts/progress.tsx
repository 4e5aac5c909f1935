import { useRef } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';

/** How many devices of a broadcast had their turn: a bar, and the numbers. */
export function Turns({ broadcast }: { broadcast: BroadcastDocument }) {
  const { devices, name, queued, refused } = broadcast;
  const done = doneOf(broadcast);
  const count = (one: number): string => one.toLocaleString('en');
  if (devices === null) return <span class="soft">{count(done)} so far</span>;
  return (
    <span class="turns">
      <span
        class="bar"
        role="img"
        aria-label={`${name}: ${count(queued)} queued, ${count(refused)} refused, of ${count(devices)}`}
      >
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect class="is-done" width={share(queued, devices)} height="4" />
          <rect class="is-bad" x={share(queued, devices)} width={share(refused, devices)} height="4" />
        </svg>
      </span>
      <span class="soft small">
        {count(done)} of {count(devices)}
      </span>
    </span>
  );
}

function share(part: number, whole: number): number {
  return whole === 0 ? 100 : (part / whole) * 100;
}

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

/** Time over which the rate is measured. */
const windowMs = 10_000;

interface Sample {
  atMs: number;
  done: number;
}

/** Devices of a broadcast that had their turn. */
export function doneOf({ queued, refused }: Pick<BroadcastDocument, 'queued' | 'refused'>): number {
  return queued + refused;
}

/** True if it goes on by itself. */
export function isRunning({ state }: Pick<BroadcastDocument, 'state'>): boolean {
  return state === 'running' || state === 'held';
}

export interface BroadcastPace {
  /** Devices a second of the last seconds; undefined until two answers are there. */
  perSecond: number | undefined;
  secondsLeft: number | undefined;
}

/** How fast a broadcast is, from the answers that were read while it was looked at. */
export function usePace(broadcast: BroadcastDocument, readAtMs: number | undefined): BroadcastPace {
  const samples = useRef<Sample[]>([]);
  if (readAtMs !== undefined && samples.current.at(-1)?.atMs !== readAtMs) {
    const sample = { atMs: readAtMs, done: doneOf(broadcast) };
    samples.current = [...samples.current.filter(({ atMs }) => readAtMs - atMs < windowMs), sample];
  }
  const [first, last] = [samples.current[0], samples.current.at(-1)];
  if (!first || !last || first === last) return { perSecond: undefined, secondsLeft: undefined };
  const perSecond = ((last.done - first.done) * 1_000) / (last.atMs - first.atMs);
  const left = (broadcast.devices ?? last.done) - last.done;
  return { perSecond, secondsLeft: perSecond > 0 ? left / perSecond : undefined };
}
