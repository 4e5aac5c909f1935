/**
 * Resolution of the seen index; the exact time is in the activity record. A device seen again within the same ten
 * minutes costs no index update.
 */
const bucketMs = 600_000;
const bucketMax = 0xffff_fffe;
/** The bucket of devices never seen: each device has an entry. */
const neverBucket = 0;
const bucketBytes = 4;

/** The bucket of a last-seen time. */
export function bucketOf(lastSeenMs: number | undefined): number {
  if (lastSeenMs === undefined) return neverBucket;
  return Math.min(Math.max(Math.floor(lastSeenMs / bucketMs), neverBucket + 1), bucketMax);
}

/** Encodes a bucket for the seen index, one character a byte. */
export function bucketInKey(bucket: number): string {
  const bytes = Buffer.allocUnsafe(bucketBytes);
  bytes.writeUInt32BE(bucket);
  return bytes.toString('latin1');
}
