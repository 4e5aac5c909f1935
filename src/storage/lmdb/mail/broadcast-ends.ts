import type { BroadcastEnds, BroadcastEndsQuery } from '../../../domain/mail/broadcast.ts';
import { broadcastMarkAt, broadcastMarkBytes, broadcastMarkOf } from '../../../domain/mail/broadcast-mark.ts';
import { sequenceKey } from '../layout/keys.ts';
import { readEnd } from '../layout/receipt-record.ts';
import type { Tables } from '../layout/tables.ts';

/** Scans the receipts of the mail that was sent while the broadcast ran. Damaged ones count as not there. */
export function readBroadcastEnds(
  { receipts }: Pick<Tables, 'receipts'>,
  { broadcast, fromMs, untilMs, after, scanMax }: BroadcastEndsQuery,
): BroadcastEnds {
  const mark = broadcastMarkOf(broadcast);
  const from =
    after === ''
      ? { start: sequenceKey(fromMs) }
      : { start: Buffer.from(after, 'hex'), exclusiveStart: true };
  const found: BroadcastEnds = { ends: {}, scanned: 0, reached: undefined };
  for (const { key, value } of receipts.getRange({ ...from, end: sequenceKey(untilMs), limit: scanMax })) {
    found.scanned += 1;
    if (found.scanned === scanMax) found.reached = key.toString('hex', 0, key.length);
    if (
      key.compare(mark, 0, broadcastMarkBytes, broadcastMarkAt, broadcastMarkAt + broadcastMarkBytes) !== 0
    ) {
      continue;
    }
    const end = endIn(value);
    if (end !== undefined) found.ends[end] = (found.ends[end] ?? 0) + 1;
  }
  return found;
}

function endIn(value: Buffer) {
  try {
    return readEnd(value);
  } catch {
    return undefined;
  }
}
