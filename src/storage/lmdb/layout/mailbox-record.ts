import { type MailboxRecord, mailboxFields } from '../../../domain/mail/mail-fields.ts';
import { isSettledLength, isSettledList } from '../../../domain/mail/settled-mails.ts';
import { RecordLayout } from './record-layout.ts';

const layout = new RecordLayout<typeof mailboxFields>('mailbox record', mailboxFields);

export const { encode: encodeMailbox } = layout;

/** These read single fields, unchecked. */
export const { head: readHead, waitingSinceMs: readWaitingSinceMs } = layout.read;

/** Reads the size, checking the record first. @throws Error for a damaged record. */
export function readSize(bytes: Buffer): number {
  if (!isSettledLength(bytes.length - layout.fixedBytes)) throw new Error('a mailbox record is damaged');
  return layout.read.size(bytes);
}

/** @throws Error for a damaged record. */
export function decodeMailbox(bytes: Buffer): MailboxRecord {
  readSize(bytes);
  return layout.decode(bytes);
}

/** True if the bytes can be the record of a mailbox. */
export function isMailboxRecord(bytes: Buffer): boolean {
  return layout.isRecord(bytes) && isSettledList(layout.read.settled(bytes));
}
