/**
 * How finely an index knows when a device was seen; the exact time is in its activity record. A device that is
 * seen again within the same ten minutes costs the index nothing.
 */
const bucketMs = 600_000;
const bucketMax = 0xffff_fffe;
/** Of devices that were never seen: each device has its entry. */
const neverBucket = 0;
const bucketBytes = 4;

/** Under which a device stands that was last seen at that time. */
export function bucketOf(lastSeenMs: number | undefined): number {
  if (lastSeenMs === undefined) return neverBucket;
  return Math.min(Math.max(Math.floor(lastSeenMs / bucketMs), neverBucket + 1), bucketMax);
}

/** A bucket of the seen index, one character a byte. */
export function bucketInKey(bucket: number): string {
  const bytes = Buffer.allocUnsafe(bucketBytes);
  bytes.writeUInt32BE(bucket);
  return bytes.toString('latin1');
}
