import type { DeviceKey } from '../../core/identity.ts';
import type { DeviceStatus } from './device.ts';

/**
 * What devices can be found by. Each has an order of its own, which is the same in all shards: `id`, `tag` and
 * `disabled` that of ids, `name` of names, `seen` of times, roughly. All but `id` have only devices that their filter
 * may be about, and are asked by only with it: a tag, a prefix that is not empty, a time, `enabled: false`,
 * `connected: true`.
 */
export type DeviceIndex = 'id' | 'tag' | 'name' | 'seen' | 'disabled' | 'connected';

/** Devices of one fleet that are all of what is asked. */
export interface DeviceFilter {
  fleetId: string;
  /** It has all of them; an index finds by the first. */
  tags?: readonly string[] | undefined;
  /** The name begins with it. */
  namePrefix?: string | undefined;
  enabled?: boolean | undefined;
  /** Not earlier than. */
  seenAfterMs?: number | undefined;
  /** Earlier than, or never. */
  seenBeforeMs?: number | undefined;
  /** Whether an event stream of it is open. */
  connected?: boolean | undefined;
}

/** One step of a search, in the order of one index. */
export interface DeviceQuery extends DeviceFilter {
  by: DeviceIndex;
  /** A position behind which to go on; '' is the beginning. */
  after: string;
  /** Entries of the index to look at, at most. */
  looks: number;
}

export interface FoundDevice extends DeviceStatus {
  /**
   * Its place in the order of the index: text of one byte a character, at most 60, to be compared as such. In the order
   * of `id` it is the id.
   */
  position: string;
}

export interface FoundDevices {
  items: FoundDevice[];
  /** Up to where all was looked at; undefined once there is no more. */
  reached: string | undefined;
}

export interface SeenCount {
  count: number;
  /** Undefined once there is no more. */
  reached: string | undefined;
}

/** Which devices have open event streams: asked of the owner of their shard, who has them in memory. */
export interface Presence {
  areConnected(devices: readonly DeviceKey[]): Promise<boolean[]>;
  /** In an order of their own, from the position behind `after`. */
  connectedDevices(fleetId: string, after: string, limit: number): Promise<ConnectedDevice[]>;
  connectedCount(fleetId: string): Promise<number>;
}

export interface ConnectedDevice {
  device: DeviceKey;
  /** Three hexadecimal digits and the id. */
  position: string;
}

/** Of a name in its index, which is in UTF-8. */
const nameBytesMax = 32;

/** The beginning of a name as its index has it, one character a byte. */
export function nameInKey(name: string): string {
  return Buffer.from(name, 'utf8').toString('latin1', 0, nameBytesMax);
}
