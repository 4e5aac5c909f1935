import { expect, it } from 'vitest';
import { generateUuid } from '../../../../src/core/uuid.ts';
import { emptyMailbox } from '../../../../src/domain/mail/mail-fields.ts';
import { rememberEnd } from '../../../../src/domain/mail/settled-mails.ts';
import {
  decodeMailbox,
  encodeMailbox,
  readSize,
} from '../../../../src/storage/lmdb/layout/mailbox-record.ts';

it('a mailbox record that is cut off anywhere but between two settled mails is refused', () => {
  const mailbox = { ...emptyMailbox(), size: 3, head: 40, tail: 43, waitingSinceMs: 1_795_975_679_885 };
  for (let n = 0; n < 2; n += 1) rememberEnd(mailbox, generateUuid(), 'acked');
  const whole = encodeMailbox(mailbox);
  expect(decodeMailbox(whole)).toEqual(mailbox);
  const settledBytes = mailbox.settled.length / 2;
  const lengths = Array.from({ length: whole.length }, (_, length) => length).filter((length) => {
    try {
      return readSize(whole.subarray(0, length)) === 3 && decodeMailbox(whole.subarray(0, length)).size === 3;
    } catch {
      return false;
    }
  });
  expect(lengths).toEqual([whole.length - 2 * settledBytes, whole.length - settledBytes]);
});
