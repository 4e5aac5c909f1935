import { deviceIdOf } from '../../../core/identity.ts';
import type { TableLayout } from '../../../storage/tables/collection.ts';
import { KeyCodec, positionField, uuidField } from '../../../storage/tables/key-codec.ts';
import { DeadLetterQueue, type FailedRecord, letterCodec } from '../../dead-letters/dead-letter-queue.ts';
import type { RunError } from '../sandbox/run.ts';
import type { ActionDeadLetter } from '../service.ts';
import type { ActionJournal } from '../tables.ts';
import type { OutboxEntry, OutgoingMail } from './outbox-entry.ts';

/** A mail that its mailbox refused. */
export interface RefusedMail extends OutgoingMail {
  reason: 'mailbox_full' | 'device_not_found' | 'not_stored';
}

/** A dead letter as stored. */
export interface StoredActionDeadLetter extends FailedRecord {
  attempts: number;
  error: RunError;
  /** With `mail_refused`: the mails to send again, under the same ordinals. */
  mails: readonly RefusedMail[];
}

/** deadLetters: action, number. */
export const actionDeadLetterTable: TableLayout<[action: Buffer, number: number], StoredActionDeadLetter> = {
  name: 'deadLetters',
  key: new KeyCodec(uuidField, positionField),
  value: letterCodec(),
};

/** The dead letters of all actions. */
export class ActionDeadLetters extends DeadLetterQueue<StoredActionDeadLetter, number> {
  /** The highest number of each action: one that was dropped is not given again. */
  readonly #last = new Map<string, number>();

  constructor(journal: ActionJournal, max: () => number) {
    super({ journal, table: actionDeadLetterTable, isNewestFirst: true, max });
  }

  /** Call inside `change`. */
  add(action: Buffer, letter: StoredActionDeadLetter): void {
    const id = action.toString('hex');
    const number = (this.#last.get(id) ?? this.lastId(action) ?? 0) + 1;
    this.#last.set(id, number);
    this.put(action, number, letter);
  }

  /** Adds the refused mails of a run. Call inside `change`. */
  addRefused({ action, record }: OutboxEntry, mails: readonly RefusedMail[]): void {
    const [first] = mails;
    const which = first === undefined ? '' : `, the first by ${deviceIdOf(first.device)}: ${first.reason}`;
    const msg = `${mails.length} of its mails were not taken${which}.`;
    const error: RunError = { code: 'mail_refused', msg };
    this.add(action, { record, failedAtMs: Date.now(), attempts: 1, error, mails });
  }

  override async forget(action: Buffer): Promise<void> {
    await super.forget(action);
    this.#last.delete(action.toString('hex'));
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
