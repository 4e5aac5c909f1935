import { exactText, hourText, preciseText, relativeText } from '../server/clock.ts';
import { followedNow } from '../server/ticking.ts';

/** A time as how long ago it was, or how soon it is; the exact one on hover. `isExact`: with its second, for quoting. */
export function Moment({ time, isExact = false }: { time: string; isExact?: boolean }) {
  return (
    <time dateTime={time} title={exactText(time)}>
      {isExact && `${exactText(time).slice(0, 19)}, `}
      {relativeText(Date.parse(time), followedNow())}
    </time>
  );
}

/** A time as the clock has it, to the millisecond; how long ago it was on hover. */
export function ClockMoment({ time }: { time: string }) {
  return (
    <time dateTime={time} title={relativeText(Date.parse(time), followedNow())}>
      {preciseText(time)}
    </time>
  );
}

/** When what is on the screen was read, and since when it cannot be. */
export function ReadNote({
  readAtMs,
  failingSinceMs,
}: {
  readAtMs?: number | undefined;
  failingSinceMs?: number | undefined;
}) {
  followedNow();
  if (readAtMs === undefined) return null;
  const text = `read ${relativeText(readAtMs, Date.now())}`;
  if (failingSinceMs === undefined) {
    return (
      <span class="read" title={exactText(readAtMs)}>
        {text}
      </span>
    );
  }
  return (
    <span class="read is-old" role="status" title={exactText(failingSinceMs)}>
      {text}; cannot be read since {hourText(failingSinceMs)}
    </span>
  );
}
