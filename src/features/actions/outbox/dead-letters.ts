import { deviceIdOf } from '../../../core/identity.ts';
import type { TableLayout } from '../../../storage/tables/collection.ts';
import { KeyCodec, positionField, uuidField } from '../../../storage/tables/key-codec.ts';
import {
  DeadLetterQueue,
  type FailedRecord,
  type LetterLimits,
  letterCodec,
} from '../../dead-letters/dead-letter-queue.ts';
import type { ActionDeadLetter, MailRefusal } from '../action-work.ts';
import type { RunError } from '../sandbox/run.ts';
import type { ActionJournal } from '../tables.ts';
import type { OutboxEntry, OutgoingMail } from './outbox-entry.ts';
import { readMails, type StoredMails, storedMails } from './stored-mails.ts';

/** A mail that its mailbox refused. */
export interface RefusedMail extends OutgoingMail {
  reason: MailRefusal;
}

/** A dead letter as stored. */
export interface StoredActionDeadLetter extends FailedRecord {
  attempts: number;
  error: RunError;
  /** The mails to send again after `mail_refused`, under the same ordinals. */
  mails: readonly RefusedMail[];
}

const stored = letterCodec<Omit<StoredActionDeadLetter, 'mails'> & StoredMails<RefusedMail>>();

/** deadLetters: action, number of the run. */
export const actionDeadLetterTable: TableLayout<[action: Buffer, number: number], StoredActionDeadLetter> = {
  name: 'deadLetters',
  key: new KeyCodec(uuidField, positionField),
  value: {
    encode: ({ mails, ...letter }) => stored.encode({ ...letter, ...storedMails(mails) }),
    decode: (bytes) => {
      const { record, failedAtMs, attempts, error, ...mails } = stored.decode(bytes);
      return { record, failedAtMs, attempts, error, mails: readMails(mails) };
    },
  },
};

/** The dead letters of all actions, each under the number of its run. */
export class ActionDeadLetters extends DeadLetterQueue<StoredActionDeadLetter, number> {
  constructor(journal: ActionJournal, limits: () => LetterLimits) {
    super({ journal, table: actionDeadLetterTable, isNewestFirst: true, limits });
  }

  /** Adds the refused mails of a run. Call inside `change`. */
  addRefused({ action, run, record }: OutboxEntry, mails: readonly RefusedMail[]): void {
    const [first] = mails;
    const which = first === undefined ? '' : `, the first by ${deviceIdOf(first.device)}: ${first.reason}`;
    const msg = `${mails.length} of its mails were not taken${which}.`;
    const error: RunError = { code: 'mail_refused', msg };
    this.put(action, run, { record, failedAtMs: Date.now(), attempts: 1, error, mails });
  }
}

/** Without the payloads of mails. */
export function describeDeadLetter(
  number: number,
  { mails, ...letter }: StoredActionDeadLetter,
): ActionDeadLetter {
  const refused = mails.map(({ device, name, reason }) => ({ device: deviceIdOf(device), name, reason }));
  return { ...letter, number, refused };
}
