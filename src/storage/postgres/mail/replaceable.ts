import type { DeviceKey } from '../../../core/identity.ts';
import { isMarked, mailOfKey, withMail, withoutMail } from '../../../domain/mail/replaceable-mails.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Session } from '../connection/database.ts';
import { RowSet } from '../schema/row-set.ts';
import { replaceable } from '../schema/tables.ts';

const none = Buffer.alloc(0);

/** The mails of each device that a newer one may replace, by their keys, for one transaction; their mailboxes are locked. */
export class DatabaseReplaceable {
  readonly #rows = new RowSet(replaceable);
  readonly #wanted: { device: DeviceKey; key: string }[] = [];

  /** Names a mail that may be fetched, requeued or ended. */
  preload(device: DeviceKey, mailId: Uint8Array): void {
    if (isMarked(mailId)) this.#rows.preload({ device });
  }

  /** Names a key whose mail is to be replaced. */
  preloadKey(device: DeviceKey, key: string): void {
    this.#rows.preload({ device });
    this.#wanted.push({ device, key });
  }

  load(session: Session): Promise<void> {
    return this.#rows.load(session);
  }

  /** The mails of the keys that were named, as they were loaded. */
  takeWanted(): { device: DeviceKey; mailId: Buffer }[] {
    return this.#wanted.splice(0).flatMap(({ device, key }) => {
      const mailId = this.mailOf(device, key);
      return mailId === undefined ? [] : [{ device, mailId }];
    });
  }

  mailOf(device: DeviceKey, key: string): Buffer | undefined {
    return mailOfKey(this.#rows.get({ device })?.mails ?? none, key);
  }

  add(device: DeviceKey, mailId: Uint8Array, key: string): void {
    const list = this.#rows.get({ device })?.mails ?? none;
    this.#rows.put({ device, mails: withMail(list, viewOf(mailId), key) });
  }

  /** Call for a mail that is no longer to be replaced, since it was fetched or has ended. */
  forget(device: DeviceKey, mailId: Uint8Array): void {
    if (!isMarked(mailId)) return;
    const row = this.#rows.get({ device });
    const left = row && withoutMail(row.mails, mailId);
    if (left === undefined) return;
    if (left.length === 0) this.#rows.remove({ device });
    else this.#rows.put({ device, mails: left });
  }

  store(session: Session): void {
    this.#rows.store(session);
  }
}
