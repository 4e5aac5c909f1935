import type { DeviceKey } from '../../core/identity.ts';
import type { Fetches } from '../mail/mail.ts';

/** What authenticating a request needs to know of a device. */
export interface DeviceCredentials {
  enabled: boolean;
  /** SHA-256 digests of the secrets that are valid now, newest first: one, or two while one is rotated out (D3). */
  secretDigests: readonly Uint8Array[];
  /**
   * Until when the last of them is valid, by the wall clock; absent for one that does not end. It may be answered for
   * some seconds more.
   */
  oldSecretUntilMs?: number | undefined;
}

/** What is read of a device when it shows its secret. */
export interface Authentication extends DeviceCredentials {
  /** Where the same read tells it; absent where it would be another, which most requests do not need. */
  mailboxSize?: number | undefined;
}

export interface Device extends DeviceCredentials {
  device: DeviceKey;
  name: string;
  tags: readonly string[];
  createdAtMs: number;
}

export interface DeviceStatus extends Device {
  mailboxSize: number;
  /** Undefined until the device's first request was written down. */
  lastSeenMs: number | undefined;
  /** From where, 4 or 16 bytes; undefined where that was not noted. */
  lastAddress: Uint8Array | undefined;
}

/** Fields that an operator changes; an absent one stays. */
export interface DeviceChange {
  enabled?: boolean;
  name?: string;
  tags?: readonly string[];
  /** To set the newest one alone again changes nothing; any other ends those there are. */
  secretDigests?: readonly Uint8Array[];
  /** Besides `tags`, of what there is then; those that are added come last. */
  addTags?: readonly string[];
  removeTags?: readonly string[];
  /** With more tags than these nothing is changed. */
  tagsMax?: number;
  /** A new secret; the newest so far goes on until that time, or not at all, and an older one ends at once. */
  rotation?: { digest: Uint8Array; oldUntilMs: number | undefined };
}

export type ChangeOutcome = 'changed' | 'unchanged' | 'not_found' | 'too_many_tags';

/** A device that is made unless it is there; if it is, `change` is done to it, or nothing. */
export interface DevicePut {
  device: Device;
  change: DeviceChange | undefined;
}

export type PutOutcome = 'created' | 'exists' | ChangeOutcome;

/** What the front ends saw of a device since they last told: kept in memory between (D13). */
export interface Activity {
  device: DeviceKey;
  /** What is told last holds. */
  lastSeenMs: number;
  /** From where, 4 or 16 bytes; undefined stays what it was. */
  address: Uint8Array | undefined;
  fetches: readonly ({ mailId: Uint8Array } & Fetches)[];
}

/** How many devices of a fleet a shard holds, and how many of these are disabled. */
export interface FleetCounts {
  devices: number;
  disabled: number;
}
