import { type DeviceKey, deviceKeyLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import { mailFetchesMax } from '../../domain/mail/fetch-rules.ts';
import { hasSequence } from '../../domain/mail/mail-sequence.ts';
import { decodeDelayed, encodeDelayed } from '../../storage/lmdb/layout/delayed-record.ts';
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
import { decodeMailbox, emptyMailbox, encodeMailbox } from '../../storage/lmdb/layout/mailbox-record.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { changeWaiting } from '../../storage/lmdb/mail/waiting-index.ts';
import { viewOf } from '../../storage/postgres/connection/bytes.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import type { Part, ShardSide } from './part.ts';

const nothing = Buffer.alloc(0);
const integerMax = 0x7fffffff;

/** Mailboxes, queued mail, and delayed mail. */
export function mailParts(side: ShardSide<Tables>): Part[] {
  return [mailboxes(side), mails(side), delayed(side)];
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
      const { size, head, tail, waitingSinceMs, settled } =
        bytes === undefined ? emptyMailbox() : decodeMailbox(bytes);
      const row: rows.MailboxRow = {
        device,
        size,
        head,
        tail,
        waiting_since_ms: waitingSinceMs === 0 ? null : waitingSinceMs + jumpsMs,
        delayed: countDelayed(tables, device),
        settled: Buffer.from(settled),
      };
      return [row];
    },
    write(written) {
      for (const { device, size, head, tail, waiting_since_ms: sinceMs, settled } of written) {
        if (tail === 1 && settled.length === 0) continue;
        const waitingSinceMs = sinceMs === null ? 0 : sinceMs - jumpsMs;
        const record = { size, head, tail, waitingSinceMs, settled };
        tables.mailboxes.putSync(keyOfDevice(device), encodeMailbox(record));
        changeWaiting(tables.waiting, device, 0, waitingSinceMs);
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
    columns: { fetch_count: `least(t.fetch_count, ${mailFetchesMax})` },
    source: tables.mail,
    rowsOf({ key, value }) {
      const mail = decodeMail(value);
      const row: rows.MailRow = {
        device: readDevice(key, 0),
        sequence: readSequence(key, deviceKeyLength),
        mail_id: viewOf(mail.id),
        name: mail.name,
        payload: viewOf(mail.payload),
        requeue_count: mail.requeueCount,
        requeues_max: mail.requeuesMax ?? null,
        fetch_count: mail.fetchCount,
        first_fetched_at_ms: mail.firstFetchedAtMs ?? null,
        accepted_at_ms: mail.acceptedAtMs + jumpsMs,
        expires_at_ms: mail.expiresAtMs + jumpsMs,
      };
      return [row];
    },
    write(written) {
      for (const row of written) {
        const { device, sequence, mail_id: id, requeue_count: requeueCount } = row;
        const expiresAtMs = row.expires_at_ms - jumpsMs;
        const bytes = encodeMail({
          id,
          name: row.name,
          payload: row.payload,
          requeueCount,
          requeuesMax: row.requeues_max ?? undefined,
          fetchCount: row.fetch_count,
          acceptedAtMs: row.accepted_at_ms - jumpsMs,
          expiresAtMs,
          firstFetchedAtMs: row.first_fetched_at_ms ?? undefined,
        });
        tables.mail.putSync(keyOfMail(device, sequence), bytes);
        tables.expiry.putSync(keyOfExpiry(expiresAtMs, device, id), nothing);
        if (requeueCount > 0 || !hasSequence(id, sequence)) {
          tables.requeued.putSync(keyOfDeviceMail(device, id), sequenceKey(sequence));
        }
      }
    },
  };
}

function delayed({ tables, jumpsMs }: ShardSide<Tables>): Part<rows.DelayedMailRow> {
  return {
    name: 'delayed mails',
    table: rows.delayedMail,
    source: tables.delayed,
    rowsOf({ key, value }) {
      const { deliverAtMs, ttlSeconds, mailboxMailsMax, mail: bytes } = decodeDelayed(value);
      const { name, payload, requeuesMax } = decodeMail(bytes);
      const row: rows.DelayedMailRow = {
        device: readDevice(key, 0),
        mail_id: Buffer.from(key.subarray(deviceKeyLength, deviceKeyLength + uuidBytesLength)),
        deliver_at_ms: deliverAtMs + jumpsMs,
        ttl_seconds: ttlSeconds,
        mailbox_mails_max: Math.min(mailboxMailsMax, integerMax),
        name,
        payload: viewOf(payload),
        requeues_max: requeuesMax ?? null,
      };
      return [row];
    },
    write(written) {
      for (const row of written) {
        const { device, mail_id: id, name, payload, ttl_seconds: ttlSeconds } = row;
        const deliverAtMs = row.deliver_at_ms - jumpsMs;
        const requeuesMax = row.requeues_max ?? undefined;
        const mail = encodeMail({ id, name, payload, requeuesMax, ...notAccepted });
        const record = { deliverAtMs, ttlSeconds, mailboxMailsMax: row.mailbox_mails_max, mail };
        tables.delayed.putSync(keyOfDeviceMail(device, id), encodeDelayed(record));
        tables.due.putSync(keyOfExpiry(deliverAtMs, device, id), nothing);
      }
    },
  };
}

/** Values of a mail that its mailbox has not accepted yet. */
const notAccepted = {
  requeueCount: 0,
  fetchCount: 0,
  acceptedAtMs: 0,
  expiresAtMs: 0,
  firstFetchedAtMs: undefined,
};
