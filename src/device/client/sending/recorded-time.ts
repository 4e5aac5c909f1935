import type { ServerLink } from '../link.ts';
import type { QueueEntry } from '../queue/queue.ts';
import { releasedAtMs } from '../trust.ts';

const lateMs = 1_000;
/** What the server takes (D25): others it would refuse. */
const agoMsMax = 30 * 86_400_000;
const aheadMsMax = 300_000;

/**
 * Decides which time is sent with an entry: none for what is not late, nor for what cannot be right, as after a boot
 * without a clock. A time by a clock that was compared with the server's only afterwards is corrected.
 */
export function recordedTimeMs({ atMs, isClockUnheard }: QueueEntry, link: ServerLink): number | null {
  if (atMs === null) return null;
  const nowMs = link.nowMs();
  const timeMs = isClockUnheard ? atMs + link.firstAheadMs : atMs;
  const isRight =
    Math.min(atMs, timeMs) >= releasedAtMs && timeMs >= nowMs - agoMsMax && timeMs <= nowMs + aheadMsMax;
  return isRight && Math.abs(nowMs - timeMs) > lateMs ? timeMs : null;
}

/** Tells whether the time of an entry is needed and cannot be trusted before the server's clock is heard. */
export function needsClock({ atMs }: QueueEntry, link: ServerLink): boolean {
  return atMs !== null && !link.isClockHeard && Math.abs(link.nowMs() - atMs) > lateMs;
}
