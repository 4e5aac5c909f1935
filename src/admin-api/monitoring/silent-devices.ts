import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import { CostCache } from '../../core/async.ts';
import { deviceIdOf } from '../../core/identity.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import { durationText } from '../../domain/duration-text.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import { countedText } from '../request/attention-source.ts';
import { activeSinceMs, type CallingRefused, withSilence } from '../request/device-state.ts';
import { timeTextOf } from '../request/times.ts';
import type { DeviceCounts } from './device-counts.ts';
import { countListed, type ListedCount } from './listed-count.ts';
import { deviceText } from './stuck.ts';

/** All devices are silent after a server that was down for long: those that live have so long to call it, or less. */
const returnMs = 900_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A count is cached for this long, or for so many times as long as the counting took; of as many fleets. */
const freshMs = 5_000;
const freshPerCost = 10;
const fleetsMax = 2_000;
/** Devices that fall silent within an hour, and their share of those that were active, that are many at once. */
const manyMin = 10;
const manyShareMin = 0.01;

interface Parts {
  config: AdminApiConfig;
  refused: CallingRefused;
  shards: Shards;
}

/** Says which devices of a fleet fell silent within the last hour, else within the last day. */
export class SilentDevices {
  readonly #parts: Parts;
  readonly #counts: DeviceCounts;
  readonly #cache = new CostCache<AttentionItem[]>({ freshMs, freshPerCost, max: fleetsMax });

  constructor(parts: Parts, counts: DeviceCounts) {
    this.#parts = parts;
    this.#counts = counts;
  }

  attention(fleet: Fleet): Promise<AttentionItem[]> {
    const nowMs = Date.now();
    const activeMs = nowMs - activeSinceMs(fleet, this.#parts.config);
    if (process.uptime() * 1_000 < Math.min(activeMs, returnMs)) return Promise.resolve([]);
    return this.#cache.get(fleet.fleetId, () => this.#find(fleet, { nowMs, activeMs })).value;
  }

  async #find(
    fleet: Fleet,
    { nowMs, activeMs }: { nowMs: number; activeMs: number },
  ): Promise<AttentionItem[]> {
    const { fleetId } = fleet;
    const ofHour = await this.#count(fleetId, nowMs - hourMs, nowMs - activeMs);
    const ofDay = ofHour.isAll
      ? await this.#count(fleetId, nowMs - dayMs, nowMs - activeMs)
      : { ...ofHour, count: 0 };
    const found = ofHour.count > 0 ? ofHour : ofDay;
    const { count, first } = found;
    if (first === undefined) return [];
    const sinceMs = (first.lastSeenMs ?? nowMs) + activeMs;
    const about = { count, is_all: found.isAll, since: timeTextOf(sinceMs) };
    if (count === 1 && ofDay.count <= 1) {
      const sentence = `${deviceText(first)} fell silent ${durationText(nowMs - sinceMs)} ago.`;
      return [attentionItem('devices_silent', sentence, { ...about, device_id: deviceIdOf(first.device) })];
    }
    const active = await this.#counts.active(fleetId, nowMs - activeMs).value;
    const isMany = ofHour.count >= manyMin && ofHour.count >= manyShareMin * (active + ofHour.count);
    const kind = isMany ? 'many_devices_silent' : 'devices_silent';
    return [attentionItem(kind, sentenceOf(found, ofDay, nowMs - sinceMs), about)];
  }

  async #count(fleetId: string, afterMs: number, sinceMs: number): Promise<ListedCount> {
    const { refused, shards } = this.#parts;
    const filter = await withSilence({ fleetId }, { silentAfterMs: afterMs, sinceMs }, refused);
    return countListed(shards.all, filter);
  }
}

/** Tells of the last hour if some fell silent then, with those of the day beside them. */
function sentenceOf({ count, isAll }: ListedCount, ofDay: ListedCount, passedMs: number): string {
  const number = countedText(count, isAll);
  const devices = count === 1 ? 'device' : 'devices';
  const others =
    ofDay.count > count ? `; ${ofDay.isAll ? '' : 'at least '}${ofDay.count} in the last 24 hours` : '';
  return `${number} ${devices} fell silent in the last ${durationText(passedMs)}${others}.`;
}
