import type { DeviceKey } from '../../../core/identity.ts';
import { isMarked, mailOfKey, withMail, withoutMail } from '../../../domain/mail/replaceable-mails.ts';
import type { Table } from '../environment/stored-tables.ts';
import { keyOfDevice } from '../layout/keys.ts';

const none = Buffer.alloc(0);

/** The mails of each device that a newer one may replace, by their keys; inside the owner's write transaction. */
export class ReplaceableMails {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  mailOf(device: DeviceKey, key: string): Buffer | undefined {
    return mailOfKey(this.#list(device) ?? none, key);
  }

  add(device: DeviceKey, mailId: Buffer, key: string): void {
    this.#table.putSync(keyOfDevice(device), withMail(this.#list(device) ?? none, mailId, key));
  }

  /** Call for a mail that is no longer to be replaced, since it was fetched or has ended. */
  forget(device: DeviceKey, mailId: Uint8Array): void {
    if (!isMarked(mailId)) return;
    const list = this.#list(device);
    const left = list && withoutMail(list, mailId);
    if (left === undefined) return;
    if (left.length === 0) this.clear(device);
    else this.#table.putSync(keyOfDevice(device), left);
  }

  clear(device: DeviceKey): void {
    this.#table.removeSync(keyOfDevice(device));
  }

  #list(device: DeviceKey): Buffer | undefined {
    return this.#table.getBinary(keyOfDevice(device));
  }
}
