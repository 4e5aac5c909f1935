import { type DeviceKey, deviceKeyLength } from '../../core/identity.ts';
import { shifted } from '../../domain/fields.ts';
import {
  delayedFields,
  emptyMailbox,
  mailboxFields,
  mailFetchesMax,
  mailFields,
  unfetched,
} from '../../domain/mail/mail-fields.ts';
import { hasSequence } from '../../domain/mail/mail-sequence.ts';
import { decodeDelayed } from '../../storage/lmdb/layout/delayed-record.ts';
import {
  keyOfDevice,
  keyOfDeviceMail,
  keyOfExpiry,
  keyOfMail,
  readDevice,
  readSequence,
  sequenceKey,
} from '../../storage/lmdb/layout/keys.ts';
import { decodeMail, encodeMail } from '../../storage/lmdb/layout/mail-record.ts';
import { decodeMailbox, encodeMailbox } from '../../storage/lmdb/layout/mailbox-record.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { DelayedMailTable, delayedMailOf } from '../../storage/lmdb/mail/delayed-mail.ts';
import { MailBytes } from '../../storage/lmdb/mail/mail-bytes.ts';
import { changeWaiting } from '../../storage/lmdb/mail/waiting-index.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import type { Part, ShardSide } from './part.ts';

const nothing = Buffer.alloc(0);

/** Mailboxes, queued mail, delayed mail, and what of both may be replaced. */
export function mailParts(side: ShardSide<Tables>): Part[] {
  return [mailboxes(side), mails(side), delayed(side), replaceable(side)];
}

/** One row per device. */
function mailboxes({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.MailboxRow> {
  return {
    name: 'mailboxes',
    table: rows.mailbox,
    // In a database, no mail has a sequence below the head; in a data folder the head is a mail.
    columns: {
      head: `CASE WHEN t.size = 0 THEN t.tail ELSE coalesce(
        (SELECT m.sequence FROM mail m WHERE m.device = t.device ORDER BY m.sequence LIMIT 1), t.tail) END`,
    },
    source: tables.devices,
    rowsOf({ key }) {
      const device = readDevice(key, 0);
      const bytes = tables.mailboxes.getBinary(keyOfDevice(device));
      const record = bytes === undefined ? emptyMailbox() : decodeMailbox(bytes);
      return [{ device, ...shifted(mailboxFields, record, jumpsMs), delayed: countDelayed(tables, device) }];
    },
    write(written) {
      for (const row of written) {
        if (row.tail === 1 && row.settled.length === 0) continue;
        const { device, ...record } = shifted(mailboxFields, row, -jumpsMs);
        tables.mailboxes.putSync(keyOfDevice(device), encodeMailbox(record));
        changeWaiting(tables.waiting, device, undefined, record.waitingSinceMs);
      }
    },
  };
}

function countDelayed({ delayed }: Tables, device: DeviceKey): number {
  const start = Buffer.from(device, 'latin1');
  return delayed.getKeysCount({ start, end: Buffer.from(`${device}\xff`, 'latin1') });
}

function mails({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.MailRow> {
  return {
    name: 'mails',
    table: rows.mail,
    columns: { fetchCount: `least(t.fetch_count, ${mailFetchesMax})` },
    source: tables.mail,
    rowsOf({ key, value }) {
      const place = { device: readDevice(key, 0), sequence: readSequence(key, deviceKeyLength) };
      return [{ ...place, ...shifted(mailFields, decodeMail(value), jumpsMs) }];
    },
    write(written) {
      for (const row of written) {
        const { device, sequence, ...mail } = shifted(mailFields, row, -jumpsMs);
        tables.mail.putSync(keyOfMail(device, sequence), encodeMail(mail));
        tables.expiry.putSync(keyOfExpiry(mail.expiresAtMs, device, mail.id), nothing);
        if (mail.requeueCount > 0 || !hasSequence(mail.id, sequence)) {
          tables.requeued.putSync(keyOfDeviceMail(device, mail.id), sequenceKey(sequence));
        }
      }
    },
  };
}

function delayed({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.DelayedMailRow> {
  // The bytes of mail are counted once all of it is copied.
  const table = new DelayedMailTable(tables, new MailBytes(tables.fleetMail), 0);
  return {
    name: 'delayed mails',
    table: rows.delayedMail,
    source: tables.delayed,
    rowsOf({ key, value }) {
      const delayed = delayedMailOf(decodeDelayed(value));
      return [{ device: readDevice(key, 0), ...shifted(delayedFields, delayed, jumpsMs) }];
    },
    write(written) {
      for (const row of written) {
        const { device, ...delayed } = shifted(delayedFields, row, -jumpsMs);
        const mail = encodeMail({ ...delayed, ...unfetched, acceptedAtMs: 0, expiresAtMs: 0 });
        table.put(device, { ...delayed, mail });
      }
    },
  };
}

function replaceable({ tables }: ShardSide<Tables>): Part<rows.ReplaceableRow> {
  const { replaceable: table } = tables;
  return {
    name: 'replaceable mails',
    table: rows.replaceable,
    source: table,
    rowsOf: ({ key, value }) => [{ device: readDevice(key, 0), mails: Buffer.from(value) }],
    write(written) {
      for (const row of written) table.putSync(keyOfDevice(row.device), row.mails);
    },
  };
}
