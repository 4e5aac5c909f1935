import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
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
import type { CountStep, DeviceFilter, DeviceIndex, DeviceQuery, FoundDevices } from './device-query.ts';

/**
 * Checks, at the cost of a memory access, whether the device, its credentials or its mailbox changed since the token
 * was taken. A device's tokens on all threads expire before the change is answered. Fetches and last-seen times do
 * not count as changes.
 */
export interface ChangeToken {
  isCurrent(): boolean;
}

/** The devices of a shard. */
export interface ShardDevices {
  /** Take it before reading, to know how long the result stays valid. Undefined if the engine cannot tell. */
  changeToken(device: DeviceKey): ChangeToken | undefined;
  credentials(device: DeviceKey): Awaitable<Authentication | undefined>;
  get(device: DeviceKey): Awaitable<DeviceStatus | undefined>;
  /** One step of a search: scans a bounded number of entries of one index, whatever it finds. */
  find(query: DeviceQuery): Awaitable<FoundDevices>;
  /** Counts the index entries that a search would scan, up to `max`. */
  countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Awaitable<number>;
  /**
   * Counts, of the next `scanMax` entries of an index after `after`, those that match: `seen` with `seenAfterMs`, or
   * `waiting` with `waitingBeforeMs`. The filter has no other condition but the fleet.
   */
  countStep(
    by: 'seen' | 'waiting',
    filter: DeviceFilter,
    after: string,
    scanMax: number,
  ): Awaitable<CountStep>;
  fleetCounts(fleetId: string): Awaitable<FleetCounts>;
  /** In order of device id, after `after`. */
  ids(fleetId: string, after: string, limit: number): Awaitable<string[]>;
  /** Ids of the fleet's devices with the tag, in order, after `after`. */
  idsWithTag(fleetId: string, tag: string, after: string, limit: number): Awaitable<string[]>;

  /** Creates all or, if one exists or is listed twice, none: then returns its key. */
  create(devices: readonly Device[]): Promise<DeviceKey | undefined>;
  put(puts: readonly DevicePut[]): Promise<PutOutcome[]>;
  /** Ends the device's streams if it is disabled or re-keyed. Returns false only if there is no such device. */
  change(device: DeviceKey, change: DeviceChange): Promise<boolean>;
  /** One write: keep the number bounded. Outcomes are in the order of `devices`. */
  changeMany(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]>;
  /**
   * Deletes the device and its mailbox, and ends its streams. Receipts, keys and dedupe keys stay; dead letters are
   * removed some time later. Returns false if there was no such device.
   */
  delete(device: DeviceKey): Promise<boolean>;
  /** Ignores unknown devices and mail. Accepted even if the queue is full. */
  noteActivity(activity: readonly Activity[]): Promise<void>;
}
