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
 * Bytes that the mail of a fleet may have in one shard: its limit less what it has in all other shards, as last known.
 * Infinite without a limit.
 */
export type MailBytesMax = (fleetId: string) => number;

export const unlimitedMailBytes: MailBytesMax = () => Number.POSITIVE_INFINITY;
