import type { DeviceKey } from '../../core/identity.ts';
import type { RecordOf } from '../fields.ts';
import type { Fetches } from '../mail/mail.ts';
import type { Description, deviceFields } from './device-fields.ts';

/** Fields of a device that authentication needs. */
export interface DeviceCredentials {
  enabled: boolean;
  /** SHA-256 digests of the valid secrets, newest first: one, or two during a rotation (D3). */
  secretDigests: readonly Uint8Array[];
  /**
   * When the older secret ends, by the wall clock; absent if there is none. It may be accepted for some seconds more.
   */
  oldSecretUntilMs?: number | undefined;
}

/** Result of the one read that authenticates a device. */
export interface Authentication extends DeviceCredentials {
  /** Present if the same read returns it; otherwise it would cost another one, which most requests do not need. */
  mailboxSize?: number | undefined;
}

export interface Device extends DeviceCredentials, RecordOf<typeof deviceFields> {
  device: DeviceKey;
}

export interface DeviceStatus extends Device {
  mailboxSize: number;
  /** The time since which the first mail of its mailbox is the first one; undefined if none waits. */
  waitingSinceMs: number | undefined;
  /** Undefined until the device's first activity is stored. */
  lastSeenMs: number | undefined;
  /** 4 or 16 bytes; undefined if unknown. */
  lastAddress: Uint8Array | undefined;
}

/** Changes by an operator; absent fields stay. */
export interface DeviceChange extends Partial<Description> {
  enabled?: boolean;
  /** Replaces the secrets. Setting just the newest one again changes nothing. */
  secretDigests?: readonly Uint8Array[];
  /** Applied after `tags`, to the tags of then; added ones come last. */
  addTags?: readonly string[];
  removeTags?: readonly string[];
  /** If the result had more tags, nothing is changed. */
  tagsMax?: number;
  /**
   * A new secret. The current one stays valid until `oldUntilMs`, or ends at once without it; an older one ends at
   * once.
   */
  rotation?: { digest: Uint8Array; oldUntilMs: number | undefined };
}

export type ChangeOutcome = 'changed' | 'unchanged' | 'not_found' | 'too_many_tags';

/** Creates a device, or if it exists applies `change`, if any. */
export interface DevicePut {
  device: Device;
  change: DeviceChange | undefined;
}

export type PutOutcome = 'created' | 'exists' | ChangeOutcome;

/** Activity of a device that a front end has seen since it last reported; kept in memory in between (D13). */
export interface Activity {
  device: DeviceKey;
  /** The last report wins. */
  lastSeenMs: number;
  /** 4 or 16 bytes; undefined keeps the known one. */
  address: Uint8Array | undefined;
  fetches: readonly ({ mailId: Uint8Array } & Fetches)[];
}

/** Devices of a fleet in one shard, and how many of them are disabled. */
export interface FleetCounts {
  devices: number;
  disabled: number;
}
