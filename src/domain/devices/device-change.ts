import type { Device, DeviceChange } from './device.ts';

/**
 * Whether the device's newest digest is imported again, as exports contain it: that is no new secret, so it must not
 * end the old one's grace period, nor any stream.
 */
function hasAlready({ secretDigests: [newest] }: Device, digests: readonly Uint8Array[]): boolean {
  const [digest] = digests;
  return (
    digests.length === 1 &&
    digest !== undefined &&
    newest !== undefined &&
    Buffer.compare(digest, newest) === 0
  );
}

/** Applies a change to a device. The caller checks whether the result is valid. */
export function changedDevice(
  before: Device,
  { addTags, removeTags, tagsMax: _, rotation, secretDigests, ...rest }: DeviceChange,
): Device {
  let after: Device = { ...before, ...rest };
  if (secretDigests !== undefined && !hasAlready(before, secretDigests)) {
    after = { ...after, secretDigests, oldSecretUntilMs: undefined };
  }
  if (addTags !== undefined || removeTags !== undefined) {
    const remaining = after.tags.filter((tag) => !removeTags?.includes(tag));
    const tags = [...new Set([...remaining, ...(addTags ?? [])])];
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

/**
 * Effect of a change on a device's open streams: they end if no secret is valid any more, or are checked again if an
 * old secret has ended.
 */
export function changeOfStreams(before: Device, after: Device): 'ended' | 'rechecked' | undefined {
  const isRekeyed = after.secretDigests !== before.secretDigests;
  if (!after.enabled || (isRekeyed && after.oldSecretUntilMs === undefined)) return 'ended';
  // A third secret drops the oldest before its time.
  return isRekeyed && before.oldSecretUntilMs !== undefined ? 'rechecked' : undefined;
}
