import type { Awaitable } from '../../core/async.ts';
import { type DeviceKey, deviceKeyOf } from '../../core/identity.ts';
import type { WriteSink } from '../write.ts';
import type {
  Activity,
  Authentication,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  DeviceStatus,
  FleetCounts,
  PutOutcome,
} from './device.ts';
import { matches } from './device-filter.ts';
import type {
  CountStep,
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevices,
  Presence,
} from './device-query.ts';

/**
 * Checks, at the cost of a memory access, whether the device, its credentials or its mailbox changed since the token
 * was taken. A device's tokens on all threads expire before the change is answered. Fetches and last-seen times do
 * not count as changes.
 */
export interface ChangeToken {
  isCurrent(): boolean;
}

/** The devices of a shard: read as the engine has them, written and searched by presence the same on every engine. */
export abstract class ShardDevices {
  readonly #presence: Presence;
  readonly #sink: WriteSink;

  constructor(presence: Presence, sink: WriteSink) {
    this.#presence = presence;
    this.#sink = sink;
  }

  /** Searches by any index but `connected` and `among`, ignoring whether they are connected. */
  protected abstract search(query: DeviceQuery): Awaitable<FoundDevices>;

  /** Reads devices in this order; undefined for one that does not exist. */
  protected abstract statusesOf(
    devices: readonly DeviceKey[],
  ): Awaitable<readonly (DeviceStatus | undefined)[]>;

  /** Take it before reading, to know how long the result stays valid. Undefined if the engine cannot tell. */
  abstract changeToken(device: DeviceKey): ChangeToken | undefined;
  abstract credentials(device: DeviceKey): Awaitable<Authentication | undefined>;
  abstract get(device: DeviceKey): Awaitable<DeviceStatus | undefined>;

  /** One step of a search: scans a bounded number of entries of one index, whatever it finds. */
  find(query: DeviceQuery): Awaitable<FoundDevices> {
    if (query.by === 'connected') return this.#findConnected(query);
    const found = query.by === 'among' ? this.#findAmong(query) : this.search(query);
    return query.connected === undefined ? found : this.#withPresence(found, query.connected);
  }

  /** Counts the index entries that a search would scan, up to `max`. */
  abstract countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Awaitable<number>;
  /**
   * Counts, of the next `scanMax` entries of an index after `after`, those that match: `seen` with `seenAfterMs`, or
   * `waiting` with `waitingBeforeMs`. The filter has no other condition but the fleet.
   */
  abstract countStep(
    by: 'seen' | 'waiting',
    filter: DeviceFilter,
    after: string,
    scanMax: number,
  ): Awaitable<CountStep>;
  abstract fleetCounts(fleetId: string): Awaitable<FleetCounts>;
  /** Lists in order of device id, after `after`. */
  abstract ids(fleetId: string, after: string, limit: number): Awaitable<string[]>;
  /** Ids of the fleet's devices with the tag, in order, after `after`. */
  abstract idsWithTag(fleetId: string, tag: string, after: string, limit: number): Awaitable<string[]>;

  /** Creates all or, if one exists or is listed twice, none: then returns its key. */
  create(devices: readonly Device[]): Promise<DeviceKey | undefined> {
    return this.#sink.write('createDevices', devices);
  }

  put(puts: readonly DevicePut[]): Promise<PutOutcome[]> {
    return this.#sink.write('putDevices', puts);
  }

  /** Ends the device's streams if it is disabled or re-keyed. Returns false only if there is no such device. */
  change(device: DeviceKey, change: DeviceChange): Promise<boolean> {
    return this.#sink.write('changeDevice', { device, change });
  }

  /** One write: keep the number bounded. Outcomes are in the order of `devices`. */
  changeMany(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]> {
    return this.#sink.write('changeDevices', { devices, change });
  }

  /**
   * Deletes the device and its mailbox, and ends its streams. Receipts, keys and dedupe keys stay; dead letters are
   * removed some time later. Returns false if there was no such device.
   */
  delete(device: DeviceKey): Promise<boolean> {
    return this.#sink.write('deleteDevice', device);
  }

  /** Ignores unknown devices and mail. Accepted even if the queue is full. */
  noteActivity(activity: readonly Activity[]): Promise<void> {
    return this.#sink.write('noteActivity', activity);
  }

  /** Ids of other shards are looked up in vain: there are few. */
  async #findAmong(query: DeviceQuery): Promise<FoundDevices> {
    const { fleetId, among = [], after, scanMax } = query;
    const ids = among.filter((id) => id > after).slice(0, scanMax);
    const known = await this.statusesOf(ids.map((id) => deviceKeyOf(fleetId, id)));
    const items = ids.flatMap((id, index) => {
      const status = known[index];
      return status !== undefined && matches(status, query) ? [{ ...status, position: id }] : [];
    });
    return { items, reached: ids.length === scanMax ? ids.at(-1) : undefined };
  }

  async #findConnected(query: DeviceQuery): Promise<FoundDevices> {
    const { fleetId, after, scanMax } = query;
    const connected = await this.#presence.connectedDevices(fleetId, after, scanMax);
    const reached = connected.length === scanMax ? connected.at(-1)?.position : undefined;
    const known = await this.statusesOf(connected.map(({ device }) => device));
    const items = connected.flatMap(({ position }, index) => {
      const status = known[index];
      return status !== undefined && matches(status, query) ? [{ ...status, position }] : [];
    });
    return { items, reached };
  }

  async #withPresence(found: Awaitable<FoundDevices>, connected: boolean): Promise<FoundDevices> {
    const { items, reached } = await found;
    if (items.length === 0) return { items, reached };
    const known = await this.#presence.areConnected(items.map(({ device }) => device));
    return { items: items.filter((_, index) => known[index] === connected), reached };
  }
}
