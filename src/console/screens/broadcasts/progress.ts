import { useRef } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';

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
