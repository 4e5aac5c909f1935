import { fleetIdOf } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import { mailFetchesMax } from '../../domain/mail/fetch-rules.ts';
import { decodeDeadLetter, encodeDeadLetter, mailOf } from '../../storage/lmdb/layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDeadLetter, keyOfReceipt, readDevice } from '../../storage/lmdb/layout/keys.ts';
import { encodeMail } from '../../storage/lmdb/layout/mail-record.ts';
import { decodeReceipt, encodeReceipt, withFetches } from '../../storage/lmdb/layout/receipt-record.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { viewOf } from '../../storage/postgres/connection/bytes.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import type { Part, ShardSide } from './part.ts';

/** Receipts and dead letters: what is retained of ended mail. */
export function endedParts(side: ShardSide<Tables>): Part[] {
  return [receipts(side), deadLetters(side)];
}

function receipts({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.ReceiptRow> {
  return {
    name: 'receipts',
    table: rows.receipt,
    source: tables.receipts,
    rowsOf({ key, value }) {
      const receipt = decodeReceipt(value);
      const row: rows.ReceiptRow = {
        device: readDevice(key, uuidBytesLength),
        mail_id: Buffer.from(key.subarray(0, uuidBytesLength)),
        // Receipts are only written for ended mail.
        state: receipt.state as rows.ReceiptRow['state'],
        name: receipt.name,
        queued_at_ms: receipt.queuedAtMs === undefined ? null : receipt.queuedAtMs + jumpsMs,
        fetch_count: receipt.fetchCount,
        first_fetched_at_ms: receipt.firstFetchedAtMs ?? null,
        requeue_count: receipt.requeueCount,
        settled_at_ms: (receipt.settledAtMs ?? 0) + jumpsMs,
      };
      return [row];
    },
    write(written) {
      for (const row of written) {
        const { device, mail_id, state, fetch_count, first_fetched_at_ms: firstMs } = row;
        // Fetches are added afterwards: a receipt may count more of them than a mail can.
        const mail = encodeEnded({ ...row, requeues_max: null, payload: nothing, fetch_count: 0 }, jumpsMs);
        const receipt = encodeReceipt(mail, state, row.settled_at_ms - jumpsMs);
        const fetched = withFetches(receipt, { count: fetch_count, firstMs: firstMs ?? 0 });
        tables.receipts.putSync(keyOfReceipt(mail_id, device), fetched);
      }
    },
  };
}

function deadLetters({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.DeadLetterRow> {
  return {
    name: 'dead letters',
    table: rows.deadLetter,
    columns: { fetch_count: `least(t.fetch_count, ${mailFetchesMax})` },
    source: tables.dead,
    rowsOf({ key, value }) {
      const device = readDevice(key, deadDeviceAt);
      const { reason, diedAtMs, queuedAtMs } = decodeDeadLetter(value);
      const mail = mailOf(value);
      const row: rows.DeadLetterRow = {
        fleet_id: fleetIdOf(device),
        mail_id: viewOf(mail.id),
        device,
        reason,
        died_at_ms: diedAtMs + jumpsMs,
        name: mail.name,
        payload: viewOf(mail.payload),
        queued_at_ms: queuedAtMs === undefined ? null : queuedAtMs + jumpsMs,
        fetch_count: mail.fetchCount,
        first_fetched_at_ms: mail.firstFetchedAtMs ?? null,
        requeue_count: mail.requeueCount,
        requeues_max: mail.requeuesMax ?? null,
      };
      return [row];
    },
    write(written) {
      for (const row of written) {
        const { device, mail_id: mailId, reason } = row;
        const letter = encodeDeadLetter(encodeEnded(row, jumpsMs), reason, row.died_at_ms - jumpsMs);
        tables.dead.putSync(keyOfDeadLetter(device, mailId), letter);
      }
    },
  };
}

const nothing = Buffer.alloc(0);

type EndedRow = Pick<
  rows.DeadLetterRow,
  'mail_id' | 'name' | 'payload' | 'queued_at_ms' | 'fetch_count' | 'requeue_count' | 'requeues_max'
> & { first_fetched_at_ms: number | null };

/** Restores the mail, except its expiry. */
function encodeEnded(row: EndedRow, jumpsMs: number): Buffer {
  return encodeMail({
    id: row.mail_id,
    name: row.name,
    payload: row.payload,
    requeueCount: row.requeue_count,
    requeuesMax: row.requeues_max ?? undefined,
    fetchCount: row.fetch_count,
    acceptedAtMs: row.queued_at_ms === null ? 0 : row.queued_at_ms - jumpsMs,
    expiresAtMs: 0,
    firstFetchedAtMs: row.first_fetched_at_ms ?? undefined,
  });
}
