import { field, type RecordOf } from '../../../domain/fields.ts';
import { delayedFields } from '../../../domain/mail/mail-fields.ts';
import { isMailRecord } from './mail-record.ts';
import { RecordLayout } from './record-layout.ts';

/** When it is delivered, in shard life time, and how; and the mail, a mail record that is not accepted yet. */
const { deliverAtMs, ttlSeconds, mailboxMailsMax } = delayedFields;
const fields = { deliverAtMs, ttlSeconds, mailboxMailsMax, mail: field.bytes };
const layout = new RecordLayout<typeof fields>('delayed mail', fields);

export type DelayedRecord = RecordOf<typeof fields>;

export const { encode: encodeDelayed } = layout;

/** Decodes a record, copying the mail. @throws Error for a damaged record. */
export function decodeDelayed(bytes: Buffer): DelayedRecord {
  if (!isDelayedRecord(bytes)) throw new Error('a delayed mail is damaged');
  return layout.decode(bytes);
}

/** True if the bytes can be a delayed mail. */
export function isDelayedRecord(bytes: Buffer): boolean {
  return layout.isRecord(bytes) && isMailRecord(bytes.subarray(layout.fixedBytes, bytes.length));
}
