import { deviceKeyLength } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import type { Broadcast, BroadcastOutcome, BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import type { Enqueue, MailOutcome } from '../../../domain/mail/mail.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfBroadcast, readDevice } from '../layout/keys.ts';

const nothing = Buffer.alloc(0);

/**
 * Which devices have had the mail of a broadcast, until that is on disk where the broadcast is kept; inside the
 * owner's write transaction. Apart from `sent`, which actions forget in the order of the records they are for.
 */
export class BroadcastMail {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Queues it for those that have not had it. */
  send(
    { broadcast, devices, mail }: Broadcast,
    enqueue: (enqueue: Enqueue) => MailOutcome,
  ): BroadcastOutcome {
    const outcome: BroadcastOutcome = { queued: 0, refused: [] };
    for (const device of devices) {
      const key = keyOfBroadcast(broadcast, device);
      const result = this.#table.doesExist(key) ? 'known' : enqueue({ ...mail, device }).result;
      if (result === 'queued') this.#table.putSync(key, nothing);
      if (result === 'queued' || result === 'known') outcome.queued += 1;
      else outcome.refused.push({ device, reason: result });
    }
    return outcome;
  }

  /** At most `limit`. Answers how many. */
  forget(active: readonly BroadcastProgress[], limit: number): number {
    const keys = [...forgettable(this.#table, active, limit)];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** Keys of what need not be known any more, at most so many. */
export function* forgettable(
  table: Table,
  active: readonly BroadcastProgress[],
  limit: number,
): Generator<Buffer> {
  const kept = new Map(active.map(({ broadcast, after }) => [Buffer.from(broadcast).toString('hex'), after]));
  let start: Buffer | undefined;
  for (let found = 0; found < limit; ) {
    let hasMore = false;
    for (const key of table.getKeys({ ...(start && { start }), limit: limit - found })) {
      hasMore = true;
      const broadcast = key.subarray(0, uuidBytesLength);
      const after = kept.get(broadcast.toString('hex'));
      if (after !== undefined && readDevice(key, uuidBytesLength) > after) {
        start = behind(broadcast);
        break;
      }
      yield key;
      found += 1;
      start = Buffer.concat([key, Buffer.alloc(1)]);
    }
    if (!hasMore) return;
  }
}

/** Sorts behind every device of a broadcast, and in front of the next one's. */
function behind(broadcast: Buffer): Buffer {
  return Buffer.concat([broadcast, Buffer.alloc(deviceKeyLength + 1, 0xff)]);
}
