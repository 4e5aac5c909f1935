import { mailLifeSecondsMax } from '../../core/bounds.ts';
import { integer } from '../../core/config/config-key.ts';

/** What mail may take of the server, waiting and when it is over. */
export const mailKeys = {
  mailboxMailsMax: integer(1_000, 1, 65_535, 'Mails in one mailbox, unless its fleet says otherwise (D16).'),
  mailLifeSeconds: integer(
    604_800,
    1,
    mailLifeSecondsMax,
    'Life of a mail, unless its fleet or the mail says otherwise (D16).',
  ),
  delayedMailsPerDeviceMax: integer(
    100,
    1,
    1_000,
    'Mails of one device that wait for their time of delivery; one more is refused.',
  ),
  receiptRetentionSeconds: integer(
    2_592_000,
    60,
    315_360_000,
    'How long the receipt of a mail is kept once the mail is settled (D17).',
  ),
  deadLetterRetentionSeconds: integer(2_592_000, 60, 315_360_000, 'How long a dead letter is kept (D16).'),
  deadLettersPerFleetMax: integer(
    10_000,
    1,
    1_000_000,
    'Dead letters of one fleet in one shard; for one more, the oldest goes.',
  ),
};
