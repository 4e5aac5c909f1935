import { deviceKeyLength, fleetIdOf } from '../../../core/identity.ts';
import { copyUuid, uuidBytesLength } from '../../../core/uuid.ts';
import {
  type Broadcast,
  type BroadcastMail,
  type BroadcastOutcome,
  broadcastOutcome,
  type MarkedBroadcast,
} from '../../../domain/mail/broadcast.ts';
import type { Enqueue, MailOutcome } from '../../../domain/mail/mail.ts';
import type { Page } from '../../../domain/page.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfBroadcast, readDevice } from '../layout/keys.ts';
import type { Tables } from '../layout/tables.ts';
import { readReceipt } from '../mail/read-dead-letters.ts';

/**
 * Devices that got the mail of a broadcast, each with the id of its mail, inside the owner's write transaction: so
 * nothing is sent twice, and what became of the mail can be told while the broadcast is retained.
 */
export class BroadcastMarks {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Queues the mail for devices that have not got it yet. */
  send(params: Broadcast, enqueue: (enqueue: Enqueue) => MailOutcome): BroadcastOutcome {
    return broadcastOutcome(params, (device) => {
      const key = keyOfBroadcast(params.broadcast, device);
      if (this.#table.doesExist(key)) return 'queued';
      const outcome = enqueue({ ...params.mail, device });
      if (outcome.result === 'queued') this.#table.putSync(key, Buffer.from(outcome.mailId));
      return outcome.result;
    });
  }

  /** Forgets at most `limit` devices of a broadcast, and returns how many. */
  forget(broadcast: Uint8Array, limit: number): number {
    const keys = [...this.#table.getKeys({ start: Buffer.from(broadcast), end: endOf(broadcast), limit })];
    for (const key of keys) this.#table.removeSync(key);
    return keys.length;
  }
}

/** The broadcasts that have marks, in order of id, after one: a seek for each. */
export function broadcastsIn(table: Table, after: Uint8Array | undefined, limit: number): MarkedBroadcast[] {
  const found: MarkedBroadcast[] = [];
  let start = after && endOf(after);
  while (found.length < limit) {
    const [key] = [...table.getKeys({ ...(start && { start }), limit: 1 })];
    if (key === undefined) break;
    const id = copyUuid(key);
    found.push({ fleetId: fleetIdOf(readDevice(key, uuidBytesLength)), id });
    start = endOf(id);
  }
  return found;
}

/** State of a mail that went with its device, or whose receipt is no longer retained. */
const forgotten = { state: 'unknown', fetchCount: 0 } as const;

/** The mails of a broadcast by device, after one. */
export function mailsOfBroadcast(
  tables: Tables,
  broadcast: Uint8Array,
  after: string,
  limit: number,
): Page<BroadcastMail> {
  const start = Buffer.concat([broadcast, Buffer.from(after === '' ? '' : `${after}\0`, 'latin1')]);
  const marks = [...tables.broadcast.getRange({ start, end: endOf(broadcast), limit: limit + 1 })];
  const items = marks.slice(0, limit).map(({ key, value }) => {
    const device = readDevice(key, uuidBytesLength);
    const mailId = copyUuid(value);
    const { state, fetchCount } = readReceipt(tables, device, mailId) ?? forgotten;
    return { device, mailId, state, fetchCount };
  });
  return { items, next: marks.length > limit ? (items.at(-1)?.device ?? null) : null };
}

/** Sorts after every device of a broadcast, and before the next broadcast's. */
function endOf(broadcast: Uint8Array): Buffer {
  return Buffer.concat([broadcast, Buffer.alloc(deviceKeyLength + 1, 0xff)]);
}
