import { yieldToEventLoop } from '../../core/async.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { Shard } from '../../domain/shard.ts';
import { listDevices } from '../routes/device-list.ts';

/** Bounds of one count; beyond, it says that there are more. */
const countedMax = 10_000;
const countedPerPage = 1_000;
const countMsMax = 200;

export interface ListedCount {
  count: number;
  /** False if there may be more. */
  isAll: boolean;
  /** The device that was seen first. */
  first: DeviceStatus | undefined;
}

/** Counts devices that fit a filter by looking at each, for as long as that is cheap. */
export async function countListed(shards: readonly Shard[], filter: DeviceFilter): Promise<ListedCount> {
  const untilMs = performance.now() + countMsMax;
  let count = 0;
  let first: DeviceStatus | undefined;
  for (let after = ''; ; ) {
    const page = await listDevices(shards, filter, after, countedPerPage, yieldToEventLoop);
    count += page.items.length;
    for (const one of page.items)
      if (first === undefined || (one.lastSeenMs ?? 0) < (first.lastSeenMs ?? 0)) first = one;
    if (page.next === null) return { count, isAll: true, first };
    if (count >= countedMax || performance.now() >= untilMs) return { count, isAll: false, first };
    after = page.next;
  }
}
