import { deviceIdOf } from '../../core/identity.ts';
import type { DeviceStatus } from './device.ts';
import { type DeviceFilter, foldName } from './device-query.ts';

/** True if a device matches the whole filter: an index covers just one of its conditions, and not exactly. */
export function matches(status: DeviceStatus, filter: DeviceFilter): boolean {
  const { tags, idPrefix, among, notAmong, namePrefix, enabled } = filter;
  const { seenAfterMs, seenBeforeMs, waitingBeforeMs } = filter;
  const { lastSeenMs, waitingSinceMs } = status;
  if (tags?.some((tag) => !status.tags.includes(tag))) return false;
  if (among !== undefined && !hasSorted(among, deviceIdOf(status.device))) return false;
  if (notAmong !== undefined && hasSorted(notAmong, deviceIdOf(status.device))) return false;
  if (idPrefix !== undefined && !deviceIdOf(status.device).startsWith(idPrefix)) return false;
  if (namePrefix !== undefined && !foldName(status.name).startsWith(foldName(namePrefix))) return false;
  if (enabled !== undefined && status.enabled !== enabled) return false;
  const isWaiting = (beforeMs: number): boolean => waitingSinceMs !== undefined && waitingSinceMs < beforeMs;
  if (waitingBeforeMs !== undefined && !isWaiting(waitingBeforeMs)) return false;
  if (seenAfterMs !== undefined && (lastSeenMs === undefined || lastSeenMs < seenAfterMs)) return false;
  return seenBeforeMs === undefined || lastSeenMs === undefined || lastSeenMs < seenBeforeMs;
}

function hasSorted(sorted: readonly string[], text: string): boolean {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] ?? '') < text) from = middle + 1;
    else to = middle;
  }
  return sorted[from] === text;
}
