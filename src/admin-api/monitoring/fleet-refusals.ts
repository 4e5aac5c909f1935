import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import { CostCache, yieldToEventLoop } from '../../core/async.ts';
import { type DeviceKey, deviceIdOf } from '../../core/identity.ts';
import {
  type DeviceRefusalReason,
  pastReasonOf,
  reasonOf,
  recentMs,
} from '../../domain/devices/current-refusals.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import type { Refusal, RefusalLog } from '../../domain/devices/refusals.ts';
import type { Shards } from '../../domain/shard.ts';
import { countedText } from '../request/attention-source.ts';
import { deviceText } from './stuck.ts';

/** Devices of a fleet that are told of, those refused last; beyond, it says that there are more. */
const devicesMax = 1_000;
/** Devices looked up in one turn of this thread. */
const devicesPerTurn = 250;
/** A finding is cached for this long, or for so many times as long as it took; of as many fleets. */
const freshMs = 2_000;
const freshPerCost = 10;
const fleetsMax = 2_000;
/** Reasons that a sentence names one by one. */
const namedMax = 4;

/** `now`: what holds. `hour`: what was refused within the last hour, whatever was accepted since. */
export type RefusalSpan = 'now' | 'hour';

/** A device that is refused, with its refusals, the last one first. */
export interface RefusedDevice {
  status: DeviceStatus;
  refusals: readonly { reason: DeviceRefusalReason; refusal: Refusal; isNow: boolean }[];
}

/** The devices of a fleet that are refused, the last one first. */
export interface FleetRefusalList {
  devices: readonly RefusedDevice[];
  /** False if there are or were others, for which there is no room. */
  isAll: boolean;
}

/** Finds the devices that this node refuses, by fleet. */
export class FleetRefusals {
  readonly #parts: { refusals: RefusalLog; shards: Shards };
  readonly #cache = new CostCache<FleetRefusalList>({ freshMs, freshPerCost, max: fleetsMax });

  constructor(parts: { refusals: RefusalLog; shards: Shards }) {
    this.#parts = parts;
  }

  of(fleetId: string, span: RefusalSpan = 'now'): Promise<FleetRefusalList> {
    return this.#cache.get(`${span} ${fleetId}`, () => this.#find(fleetId, span)).value;
  }

  /** Ids of those refused for a reason, or for any, in their order. */
  async idsOf(fleetId: string, reason: DeviceRefusalReason | 'any'): Promise<string[]> {
    const { devices } = await this.of(fleetId);
    return devices
      .filter(({ refusals }) => refusals.some((one) => reason === 'any' || one.reason === reason))
      .map(({ status }) => deviceIdOf(status.device))
      .sort();
  }

  /** Ids of those that were refused since then, in their order. */
  async callingIds(fleetId: string, sinceMs: number): Promise<string[]> {
    const { devices } = await this.of(fleetId);
    return devices
      .filter(({ refusals }) => refusals.some(({ refusal }) => refusal.lastMs >= sinceMs))
      .map(({ status }) => deviceIdOf(status.device))
      .sort();
  }

  /** Says how many are refused, and why; not of disabled ones, which somebody wants to be. */
  async attention(fleetId: string): Promise<AttentionItem[]> {
    const { devices, isAll } = await this.of(fleetId);
    const refused = devices.flatMap((one) => {
      if (!one.status.enabled) return [];
      const [main] = one.refusals.filter(({ reason }) => reason !== 'disabled');
      return main === undefined ? [] : [{ ...one, why: whyOf(main) }];
    });
    const [first] = refused;
    if (first === undefined) return [];
    const count = refused.length;
    if (count === 1 && isAll) {
      const sentence = `${deviceText(first.status)} is refused: ${first.why}.`;
      return [
        attentionItem('devices_refused', sentence, { device_id: deviceIdOf(first.status.device), count }),
      ];
    }
    const number = countedText(count, isAll);
    const sentence = `${number} devices are refused: ${reasonsOf(refused.map(({ why }) => why))}.`;
    return [attentionItem('devices_refused', sentence, { count, is_all: isAll })];
  }

  async #find(fleetId: string, span: RefusalSpan): Promise<FleetRefusalList> {
    const { refusals, shards } = this.#parts;
    const nowMs = Date.now();
    const found = await refusals.ofFleet(fleetId, nowMs - recentMs);
    const current = found.devices.flatMap(({ device, refusals: all }) => {
      const held = all.flatMap((refusal) => {
        const reasonNow = reasonOf(refusal, nowMs);
        const reason = span === 'now' ? reasonNow : pastReasonOf(refusal);
        return reason === undefined ? [] : [{ reason, refusal, isNow: reasonNow !== undefined }];
      });
      return held.length === 0 ? [] : [{ device, refusals: held }];
    });
    const shown = current.slice(0, devicesMax);
    const devices: RefusedDevice[] = [];
    for (let start = 0; start < shown.length; start += devicesPerTurn) {
      const some = shown.slice(start, start + devicesPerTurn);
      const statuses = await Promise.all(some.map(({ device }) => statusOf(shards, device)));
      // One that was deleted since is no device.
      for (const [index, status] of statuses.entries())
        if (status !== undefined) devices.push({ status, refusals: some[index]?.refusals ?? [] });
      await yieldToEventLoop();
    }
    return { devices, isAll: !found.isFull && current.length <= devicesMax };
  }
}

async function statusOf(shards: Shards, device: DeviceKey): Promise<DeviceStatus | undefined> {
  return shards.of(device).devices.get(device);
}

const words: Readonly<Record<Exclude<DeviceRefusalReason, 'schema_mismatch'>, string>> = {
  wrong_secret: 'wrong secret',
  rate_limited: 'too many requests',
  disabled: 'disabled',
  other: 'other reasons',
};

function whyOf({ reason, refusal }: RefusedDevice['refusals'][number]): string {
  return reason === 'schema_mismatch' ? `schema ${refusal.name ?? ''}` : words[reason];
}

/** Reasons with their numbers, the most frequent first: `wrong secret 2, schema flow 4`. */
function reasonsOf(all: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const why of all) counts.set(why, (counts.get(why) ?? 0) + 1);
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  const named = sorted.slice(0, namedMax).map(([why, count]) => `${why} ${count}`);
  const others = sorted.slice(namedMax).reduce((sum, [, count]) => sum + count, 0);
  return [...named, ...(others > 0 ? [`others ${others}`] : [])].join(', ');
}
