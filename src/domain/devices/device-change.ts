import type { Device, DeviceChange, FleetCounts } from './device.ts';

/** Outcome of a change, and its effect on the device's open streams (D21). */
export type ChangeDecision =
  | { result: 'unchanged' | 'too_many_tags' }
  | { result: 'changed'; after: Device; streams: 'endedStreams' | 'recheckedStreams' | undefined };

/** Applies a change to a device. */
export function decideChange(before: Device, change: DeviceChange): ChangeDecision {
  const after = changedDevice(before, change);
  if (change.tagsMax !== undefined && after.tags.length > change.tagsMax) return { result: 'too_many_tags' };
  if (isSame(before, after)) return { result: 'unchanged' };
  return { result: 'changed', after, streams: streamsAfter(before, after) };
}

/** Drops the old secret, whose time is over (D3). */
export function withoutOldSecret(device: Device): Device {
  return { ...device, secretDigests: device.secretDigests.slice(0, -1), oldSecretUntilMs: undefined };
}

/**
 * Difference that creating, changing or deleting a device makes to the counts of its fleet; undefined stands for no
 * device.
 */
export function addedCounts(
  before: Pick<Device, 'enabled'> | undefined,
  after: Pick<Device, 'enabled'> | undefined,
): FleetCounts {
  return {
    devices: Number(after !== undefined) - Number(before !== undefined),
    disabled: Number(after?.enabled === false) - Number(before?.enabled === false),
  };
}

function changedDevice(
  before: Device,
  { addTags, removeTags, tagsMax: _, rotation, secretDigests, ...rest }: DeviceChange,
): Device {
  const after: Device = { ...before, ...rest };
  if (secretDigests !== undefined && !isNewest(before, secretDigests)) {
    after.secretDigests = secretDigests;
    after.oldSecretUntilMs = undefined;
  }
  if (addTags !== undefined || removeTags !== undefined) {
    const remaining = after.tags.filter((tag) => !removeTags?.includes(tag));
    after.tags = [...new Set([...remaining, ...(addTags ?? [])])];
  }
  if (rotation !== undefined) {
    const { digest, oldUntilMs } = rotation;
    const [current] = before.secretDigests;
    const isKept = oldUntilMs !== undefined && current !== undefined;
    after.secretDigests = isKept ? [digest, current] : [digest];
    after.oldSecretUntilMs = isKept ? oldUntilMs : undefined;
  }
  return after;
}

/**
 * True if the device's newest digest is imported again, as exports contain it: that is no new secret, so it must not
 * end the old one's grace period, nor any stream.
 */
function isNewest({ secretDigests: [newest] }: Device, digests: readonly Uint8Array[]): boolean {
  const [digest] = digests;
  return digests.length === 1 && digest !== undefined && newest !== undefined && isEqual(digest, newest);
}

/** Compares all fields, also those to come. */
function isSame(before: Device, after: Device): boolean {
  const names = Object.keys({ ...before, ...after }) as (keyof Device)[];
  return names.every((name) => isEqual(before[name], after[name]));
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other) === 0;
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((item, at) => isEqual(item, other[at]));
}

/**
 * The effect on open streams (D21): they end if no secret is valid any more, or are checked again if an old secret has
 * ended.
 */
function streamsAfter(before: Device, after: Device): 'endedStreams' | 'recheckedStreams' | undefined {
  const isRekeyed = after.secretDigests !== before.secretDigests;
  if (!after.enabled || (isRekeyed && after.oldSecretUntilMs === undefined)) return 'endedStreams';
  // A third secret drops the oldest before its time.
  return isRekeyed && before.oldSecretUntilMs !== undefined ? 'recheckedStreams' : undefined;
}
