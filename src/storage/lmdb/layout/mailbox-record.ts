import { mailboxFields } from '../../../domain/mail/mail-fields.ts';
import { isSettledList } from '../../../domain/mail/settled-mails.ts';
import { RecordLayout } from './record-layout.ts';

const layout = new RecordLayout<typeof mailboxFields>('mailbox record', mailboxFields);

export const { encode: encodeMailbox, decode: decodeMailbox, check: checkMailbox } = layout;

/** These read single fields, unchecked. */
export const { size: readSize, head: readHead } = layout.read;

/** True if the bytes can be the record of a mailbox. */
export function isMailboxRecord(bytes: Buffer): boolean {
  return layout.isRecord(bytes) && isSettledList(layout.read.settled(bytes));
}
