import type { DeviceKey } from '../../core/identity.ts';
import type { DeviceStatus } from './device.ts';

/**
 * Indexes of devices. Each has its own order, the same in all shards: `id`, `tag` and `disabled` that of ids, `name`
 * of names, `seen` of times, roughly, `waiting` of times; `among` is a list of ids. All but `id` contain only devices that may match their
 * condition, and require it: a tag, a prefix that is not empty, a time, `enabled: false`, `connected: true`.
 */
export type DeviceIndex = 'id' | 'tag' | 'name' | 'seen' | 'waiting' | 'disabled' | 'connected' | 'among';

/** A filter for devices of one fleet; all conditions must hold. */
export interface DeviceFilter {
  fleetId: string;
  /** All must be present; the index scanMax up the first. */
  tags?: readonly string[] | undefined;
  idPrefix?: string | undefined;
  /** In any letter case. */
  namePrefix?: string | undefined;
  enabled?: boolean | undefined;
  /** Inclusive. */
  seenAfterMs?: number | undefined;
  /** Exclusive; includes devices that were never seen. */
  seenBeforeMs?: number | undefined;
  /** Exclusive: the first mail of its mailbox has been the first one since an earlier time. */
  waitingBeforeMs?: number | undefined;
  /** Ids, in their order: it is one of these. Then no index is asked. */
  among?: readonly string[] | undefined;
  /** Ids, in their order: it is none of these. */
  notAmong?: readonly string[] | undefined;
  /** True if it has an open event stream. */
  connected?: boolean | undefined;
}

/** One step of a search, in index order. */
export interface DeviceQuery extends DeviceFilter {
  by: DeviceIndex;
  /** From the end of the index, which is then `seen`. */
  isReversed?: boolean | undefined;
  /** The position to continue after; '' is the beginning. */
  after: string;
  /** Maximum index entries to scan. */
  scanMax: number;
}

export interface FoundDevice extends DeviceStatus {
  /**
   * Its position in the index: text of one byte per character, at most 60, compared as such. In the `id` index it is
   * the id.
   */
  position: string;
}

export interface FoundDevices {
  items: FoundDevice[];
  /** The last position scanned; undefined at the end. */
  reached: string | undefined;
}

/** One step of a count. */
export interface CountStep {
  count: number;
  /** The last position scanned; undefined at the end. */
  reached: string | undefined;
}

/** Knows which devices have open event streams: known to the shard's owner, in memory. */
export interface Presence {
  areConnected(devices: readonly DeviceKey[]): Promise<boolean[]>;
  /** Lists in hash order, after the position `after`. */
  connectedDevices(fleetId: string, after: string, limit: number): Promise<ConnectedDevice[]>;
  connectedCount(fleetId: string): Promise<number>;
}

export interface ConnectedDevice {
  device: DeviceKey;
  /** Three hexadecimal digits of a hash, and the id. */
  position: string;
}

/** Maximum UTF-8 bytes of a name in the index. */
const nameBytesMax = 32;

/**
 * Folds the letter case of a name, each character by itself: a language's rules for the end of a word would fold a
 * prefix otherwise than the name that begins with it.
 */
export function foldName(name: string): string {
  return Array.from(name, (character) => character.toUpperCase().toLowerCase()).join('');
}

/** The prefix of a folded name that its index holds, one character a byte. */
export function nameInKey(name: string): string {
  return Buffer.from(foldName(name), 'utf8').toString('latin1', 0, nameBytesMax);
}
