/**
 * A mail's id says whether it is a broadcast's, and whose, so that what became of a broadcast is found among receipts
 * without a word stored for it, and without work when a mail ends. In byte 8, below the variant of the UUID, one bit is
 * set in the mail of broadcasts alone; its lower five bits and the three bytes behind it are the broadcast's own.
 */
export const broadcastMarkAt = 8;
export const broadcastMarkBytes = 4;
export const broadcastMarkBit = 0x20;
const ownBits = 0x1f;

/** The four bytes that the ids of a broadcast's mail have in common; those of others, but for one in 2^29, have not. */
export function broadcastMarkOf(broadcast: Uint8Array): Buffer {
  const mark = Buffer.from(broadcast.subarray(broadcastMarkAt, broadcastMarkAt + broadcastMarkBytes));
  mark[0] = 0x80 | broadcastMarkBit | ((mark[0] ?? 0) & ownBits);
  return mark;
}

/** Marks the id of a new mail; `broadcast`: undefined for a mail of its own. */
export function markBroadcast(mailId: Buffer, broadcast: Uint8Array | undefined): void {
  if (broadcast === undefined) mailId[broadcastMarkAt] = (mailId[broadcastMarkAt] ?? 0) & ~broadcastMarkBit;
  else mailId.set(broadcastMarkOf(broadcast), broadcastMarkAt);
}
