import type { DeviceKey } from '../../../core/identity.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import type { MailboxRecord } from '../../../domain/mail/mail-fields.ts';
import { sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { keyOfDeviceMail, keyOfMail, readSequence } from '../layout/keys.ts';
import { checkMail } from '../layout/mail-record.ts';
import type { Tables } from '../layout/tables.ts';

/** A mail and its sequence; `bytes` is a view valid until the next read or write. */
export interface FoundMail {
  sequence: number;
  bytes: Buffer;
}

type MailTables = Pick<Tables, 'mail' | 'requeued'>;

/** Returns a view valid until the next read. @throws Error for a damaged record. */
export function readMail(tables: MailTables, device: DeviceKey, sequence: number): Buffer | undefined {
  const bytes = tables.mail.getBinaryFast(keyOfMail(device, sequence));
  if (bytes !== undefined) checkMail(bytes);
  return bytes;
}

/** Finds a mail by id. */
export function findMail(
  tables: MailTables,
  device: DeviceKey,
  record: Pick<MailboxRecord, 'size' | 'head' | 'tail'>,
  mailId: Uint8Array,
): FoundMail | undefined {
  if (record.size === 0) return undefined;
  const sequence = sequenceFrom(record.head, mailId);
  if (sequence < record.tail) {
    const bytes = readMail(tables, device, sequence);
    if (bytes?.subarray(0, uuidBytesLength).equals(mailId)) return { sequence, bytes };
  }
  const moved = tables.requeued.getBinaryFast(keyOfDeviceMail(device, mailId));
  if (moved === undefined) return undefined;
  const movedTo = readSequence(moved, 0);
  const bytes = readMail(tables, device, movedTo);
  if (bytes === undefined) throw new Error(`no mail under sequence ${movedTo}`);
  return { sequence: movedTo, bytes };
}
