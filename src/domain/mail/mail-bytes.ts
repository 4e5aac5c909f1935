/**
 * What a mail counts for beside its payload: its header with its name, its entries by time and by id, and what the
 * engine adds to each.
 */
export const mailOverheadBytes = 256;

/** What a mail counts for while it waits, delayed or in its mailbox, of what its fleet's mail may have. */
export function waitingBytesOf(payloadBytes: number): number {
  return payloadBytes + mailOverheadBytes;
}

/**
 * True if a fleet whose mail has `bytes` may have one more mail, in place of the one that it replaces, if it does. What
 * takes no more than that one had has room even beyond the limit.
 */
export function hasRoomForMail(
  bytes: number,
  payloadBytes: number,
  max: number,
  replacedBytes?: number,
): boolean {
  const added =
    waitingBytesOf(payloadBytes) - (replacedBytes === undefined ? 0 : waitingBytesOf(replacedBytes));
  return added <= 0 || bytes + added <= max;
}

/**
 * Bytes that the mail of a fleet may have in one shard: its limit less what it has in all other shards, as last known.
 * Infinite without a limit.
 */
export type MailBytesMax = (fleetId: string) => number;

export const unlimitedMailBytes: MailBytesMax = () => Number.POSITIVE_INFINITY;
