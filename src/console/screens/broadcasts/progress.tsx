import { useRef } from 'preact/hooks';
import type { BroadcastDocument, BroadcastOutcomesDocument } from '../../../contract/broadcast.ts';
import { countedParts, outcomeSummary } from './outcome-parts.ts';

const count = (one: number): string => one.toLocaleString('en');

export interface OutcomeBarProps {
  broadcast: BroadcastDocument;
  /** Undefined until they are counted. */
  outcomes: BroadcastOutcomesDocument | undefined;
  /** False where the numbers stand beside it. */
  hasWords?: boolean;
}

/** What became of a broadcast: one bar in parts, and their numbers. */
export function OutcomeBar({ broadcast, outcomes, hasWords = true }: OutcomeBarProps) {
  const { devices, name } = broadcast;
  const parts = countedParts(broadcast, outcomes).filter((part) => part.count > 0);
  const done = doneOf(broadcast);
  const whole = Math.max(devices ?? done, done, 1);
  const words = parts.map((part) =>
    outcomes === undefined && part.tone === 'waits'
      ? `${count(part.count)} queued`
      : `${count(part.count)} ${part.name.toLowerCase()}`,
  );
  const left = whole - done;
  if (devices !== null && left > 0 && broadcast.ended_at === null) words.push(`${count(left)} to come`);
  const text = words.length === 0 ? (devices === 0 ? 'no device fits' : 'none yet') : words.join(', ');
  let x = 0;
  return (
    <span class="turns">
      <span class="bar" role="img" aria-label={`${name}: ${text}`}>
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          {parts.map((part) => {
            const width = (part.count / whole) * 100;
            x += width;
            return <rect key={part.name} class={`is-${part.tone}`} x={x - width} width={width} height="4" />;
          })}
        </svg>
      </span>
      {hasWords && <span class="soft small">{text}</span>}
    </span>
  );
}

const marks: Readonly<Record<BroadcastDocument['state'], string>> = {
  running: 'is-connected',
  held: 'is-warn',
  paused: 'is-queued',
  done: 'is-disabled',
  cancelled: 'is-disabled',
};

const toneMarks = { good: 'is-acked', waits: 'is-queued', bad: 'is-bad', other: 'is-disabled' } as const;

export interface BroadcastMarkProps {
  broadcast: Pick<BroadcastDocument, 'state' | 'queued' | 'refused'>;
  /** Undefined until they are counted. */
  outcomes?: BroadcastOutcomesDocument | undefined;
}

/** The state of a broadcast. One that is done says what became of it; until that is counted, to how many it was queued. */
export function BroadcastMark({ broadcast, outcomes }: BroadcastMarkProps) {
  const { state, queued, refused } = broadcast;
  if (state !== 'done') return <span class={`state ${marks[state]}`}>{state}</span>;
  if (outcomes !== undefined) {
    const { tone, text, more } = outcomeSummary(broadcast, outcomes);
    return (
      <span class={`state ${toneMarks[tone]}`}>
        <span>
          {text}
          <span class="less">{more}</span>
        </span>
      </span>
    );
  }
  const which = refused === 0 ? 'all' : `${count(queued)} of ${count(queued + refused)}`;
  return (
    <span class={`state ${marks.done}`}>
      <span>
        queued<span class="less"> to {which}</span>
      </span>
    </span>
  );
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

/** Seconds between two looks at what became of its mails: often while it runs. */
export function lookSeconds(broadcast: Pick<BroadcastDocument, 'state'>): number {
  return isRunning(broadcast) ? 5 : 20;
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
