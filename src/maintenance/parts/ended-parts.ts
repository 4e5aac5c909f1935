import { fleetIdOf } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import { picked, shifted } from '../../domain/fields.ts';
import { letterFields, mailFetchesMax, receiptFields } from '../../domain/mail/mail-fields.ts';
import { decodeDeadLetter, encodeDeadLetter, mailOf } from '../../storage/lmdb/layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDeadLetter, keyOfReceipt, readDevice } from '../../storage/lmdb/layout/keys.ts';
import { encodeMail } from '../../storage/lmdb/layout/mail-record.ts';
import { decodeStoredReceipt, encodeStoredReceipt } from '../../storage/lmdb/layout/receipt-record.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
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
      const mailId = Buffer.from(key.subarray(0, uuidBytesLength));
      const receipt = shifted(receiptFields, decodeStoredReceipt(value), jumpsMs);
      const reply = tables.replies.getBinary(key);
      return [{ device: readDevice(key, uuidBytesLength), mailId, ...receipt, reply }];
    },
    write(written) {
      for (const row of written) {
        const receipt = encodeStoredReceipt(shifted(receiptFields, row, -jumpsMs));
        const key = keyOfReceipt(row.mailId, row.device);
        tables.receipts.putSync(key, receipt);
        if (row.reply !== undefined) tables.replies.putSync(key, row.reply);
      }
    },
  };
}

function deadLetters({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.DeadLetterRow> {
  return {
    name: 'dead letters',
    table: rows.deadLetter,
    columns: { fetchCount: `least(t.fetch_count, ${mailFetchesMax})` },
    source: tables.dead,
    rowsOf({ key, value }) {
      const device = readDevice(key, deadDeviceAt);
      const letter = { ...decodeDeadLetter(value), payload: mailOf(value).payload };
      const { mailId } = letter;
      const row = shifted(letterFields, picked(letterFields, letter), jumpsMs);
      return [{ fleetId: fleetIdOf(device), mailId, device, ...row }];
    },
    write(written) {
      for (const row of written) {
        const { device, mailId: id, reason, diedAtMs, ...letter } = shifted(letterFields, row, -jumpsMs);
        const mail = encodeMail({ ...letter, id, acceptedAtMs: letter.queuedAtMs ?? 0, expiresAtMs: 0 });
        tables.dead.putSync(keyOfDeadLetter(device, id), encodeDeadLetter(mail, reason, diedAtMs));
      }
    },
  };
}
