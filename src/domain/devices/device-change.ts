import type { Device, DeviceChange } from './device.ts';

/**
 * An export has a device's newest digest, and an import brings it back: that is no other secret, so it must not end
 * the grace period of the old one, nor any stream.
 */
function hasAlready({ secretDigests: [newest] }: Device, given: readonly Uint8Array[]): boolean {
  const [digest] = given;
  return (
    given.length === 1 && digest !== undefined && newest !== undefined && Buffer.compare(digest, newest) === 0
  );
}

/** What a change makes of a device; before it is known whether it may be that. */
export function changedDevice(
  before: Device,
  { addTags, removeTags, tagsMax: _, rotation, secretDigests, ...rest }: DeviceChange,
): Device {
  let after: Device = { ...before, ...rest };
  if (secretDigests !== undefined && !hasAlready(before, secretDigests)) {
    after = { ...after, secretDigests, oldSecretUntilMs: undefined };
  }
  if (addTags !== undefined || removeTags !== undefined) {
    const kept = after.tags.filter((tag) => !removeTags?.includes(tag));
    const tags = [...new Set([...kept, ...(addTags ?? [])])];
    const isSame = tags.length === after.tags.length && tags.every((tag, index) => tag === after.tags[index]);
    if (!isSame) after = { ...after, tags };
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

/** What becomes of the streams of a device that are open: it may not come in any more, or not with every secret. */
export function changeOfStreams(before: Device, after: Device): 'ended' | 'rechecked' | undefined {
  const isRekeyed = after.secretDigests !== before.secretDigests;
  if (!after.enabled || (isRekeyed && after.oldSecretUntilMs === undefined)) return 'ended';
  // A third secret drops the oldest before its time.
  return isRekeyed && before.oldSecretUntilMs !== undefined ? 'rechecked' : undefined;
}
