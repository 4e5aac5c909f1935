import { deviceKeyLength } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import {
  type Broadcast,
  type BroadcastOutcome,
  type BroadcastProgress,
  broadcastOutcome,
} from '../../../domain/mail/broadcast.ts';
import type { Enqueue, MailOutcome } from '../../../domain/mail/mail.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfBroadcast, readDevice } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * Devices that got the mail of a broadcast, until its own progress is durable; inside the owner's write transaction.
 * Separate from `sent`, which actions prune in the order of their records.
 */
export class BroadcastMail {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Queues the mail for devices that have not got it yet. */
  send(params: Broadcast, enqueue: (enqueue: Enqueue) => MailOutcome): BroadcastOutcome {
    return broadcastOutcome(params, (device) => {
      const key = keyOfBroadcast(params.broadcast, device);
      if (this.#table.doesExist(key)) return 'queued';
      const { result } = enqueue({ ...params.mail, device, broadcast: params.broadcast });
      if (result === 'queued') this.#table.putSync(key, nothing);
      return result;
    });
  }

  /** Prunes at most `limit` entries, and returns how many. */
  prune(active: readonly BroadcastProgress[], limit: number): number {
    const keys = [...prunable(this.#table, active, limit)];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** Yields at most `limit` keys that are no longer needed. */
export function* prunable(
  table: Table,
  active: readonly BroadcastProgress[],
  limit: number,
): Generator<Buffer> {
  const afterOf = new Map(
    active.map(({ broadcast, after }) => [Buffer.from(broadcast).toString('hex'), after]),
  );
  let start: Buffer | undefined;
  for (let found = 0; found < limit; ) {
    let hasMore = false;
    for (const key of table.getKeys({ ...(start && { start }), limit: limit - found })) {
      hasMore = true;
      const broadcast = key.subarray(0, uuidBytesLength);
      const after = afterOf.get(broadcast.toString('hex'));
      if (after !== undefined && readDevice(key, uuidBytesLength) > after) {
        start = endOf(broadcast);
        break;
      }
      yield key;
      found += 1;
      start = Buffer.concat([key, Buffer.alloc(1)]);
    }
    if (!hasMore) return;
  }
}

/** Sorts after every device of a broadcast, and before the next broadcast's. */
function endOf(broadcast: Buffer): Buffer {
  return Buffer.concat([broadcast, Buffer.alloc(deviceKeyLength + 1, 0xff)]);
}
