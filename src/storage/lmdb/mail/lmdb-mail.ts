import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import type { BroadcastMail } from '../../../domain/mail/broadcast.ts';
import type { Receipt } from '../../../domain/mail/ended-mail.ts';
import type { DelayedMail, Mail, MailboxFront, MailboxHead, MailFront } from '../../../domain/mail/mail.ts';
import { sequenceMax } from '../../../domain/mail/mail-fields.ts';
import { mailPageBytesMax, ShardMail } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import { mailsOfBroadcast } from '../dedupe/broadcast-marks.ts';
import type { Environment } from '../environment/environment.ts';
import { keyOfDevice, keyOfMail, readSequence } from '../layout/keys.ts';
import { decodeMail } from '../layout/mail-record.ts';
import { readHead, readSize } from '../layout/mailbox-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import type { WriteQueue } from '../shard/write-queue.ts';
import { readDelayed } from './delayed-mail.ts';
import { readMailBytes } from './mail-bytes.ts';
import { readReceipt, readWaitingPayload } from './read-dead-letters.ts';

/** The mailboxes of a shard on LMDB: reads in place, on whatever thread asks. */
export class LmdbMail extends ShardMail {
  readonly #environment: Environment;
  readonly #tables: Tables;

  constructor(environment: Environment, tables: Tables, queue: WriteQueue) {
    super(queue);
    this.#environment = environment;
    this.#tables = tables;
  }

  size(device: DeviceKey): number {
    this.#environment.refresh();
    const mailbox = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    return mailbox === undefined ? 0 : readSize(mailbox);
  }

  head(device: DeviceKey): MailboxHead {
    this.#environment.refresh();
    const mailbox = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    const size = mailbox === undefined ? 0 : readSize(mailbox);
    if (mailbox === undefined || size === 0) return { size: 0, mail: undefined };
    return { size, mail: this.#head(device, readHead(mailbox)) };
  }

  front(device: DeviceKey, { mailsMax, bytesMax }: MailFront): MailboxFront {
    this.#environment.refresh();
    const mailbox = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    const size = mailbox === undefined ? 0 : readSize(mailbox);
    const mails: Mail[] = [];
    if (mailbox === undefined || size === 0 || mailsMax === 0) return { size, mails };
    if (mailsMax === 1) {
      // What nearly all ask for: a range would cost twice as much.
      const mail = this.#head(device, readHead(mailbox));
      return { size, mails: mail.payload.length > bytesMax ? mails : [mail] };
    }
    const start = Buffer.from(keyOfMail(device, readHead(mailbox)));
    const end = Buffer.from(keyOfMail(device, sequenceMax));
    let bytes = 0;
    try {
      for (const { value } of this.#tables.mail.getRange({ start, end, limit: mailsMax })) {
        const mail = decodeMail(value);
        bytes += mail.payload.length;
        if (bytes > bytesMax) break;
        mails.push(mail);
      }
    } catch (error) {
      // A damaged mail behind others is no matter before it is at the head.
      if (mails.length === 0) throw error;
    }
    return { size, mails };
  }

  list(device: DeviceKey, after: string, limit: number): Page<Mail> {
    this.#environment.refresh();
    const start = Buffer.from(keyOfMail(device, after === '' ? 0 : Number(after) + 1));
    const end = Buffer.from(keyOfMail(device, sequenceMax));
    const jumpsMs = storedJumpsMs(this.#tables.times);
    const items: Mail[] = [];
    let bytes = 0;
    let last = '';
    for (const { key, value } of this.#tables.mail.getRange({ start, end, limit: limit + 1 })) {
      if (items.length === limit || bytes >= mailPageBytesMax) return { items, next: last };
      const mail = decodeMail(value);
      const acceptedAtMs = mail.acceptedAtMs + jumpsMs;
      items.push({ ...mail, acceptedAtMs, expiresAtMs: mail.expiresAtMs + jumpsMs });
      bytes += mail.payload.length;
      last = String(readSequence(key, deviceKeyLength));
    }
    return { items, next: null };
  }

  listDelayed(device: DeviceKey, after: string, limit: number): Page<DelayedMail> & { total: number } {
    this.#environment.refresh();
    return readDelayed(this.#tables, device, after, limit);
  }

  receipt(device: DeviceKey, mailId: Uint8Array): Receipt | undefined {
    this.#environment.refresh();
    return readReceipt(this.#tables, device, mailId);
  }

  payload(device: DeviceKey, mailId: Uint8Array): Buffer | undefined {
    this.#environment.refresh();
    return readWaitingPayload(this.#tables, device, mailId);
  }

  bytesOfFleet(fleetId: string): number {
    this.#environment.refresh();
    return readMailBytes(this.#tables.fleetMail, fleetId);
  }

  ofBroadcast(broadcast: Uint8Array, after: string, limit: number): Page<BroadcastMail> {
    this.#environment.refresh();
    return mailsOfBroadcast(this.#tables, broadcast, after, limit);
  }

  #head(device: DeviceKey, sequence: number): Mail {
    const bytes = this.#tables.mail.getBinaryFast(keyOfMail(device, sequence));
    if (bytes === undefined) throw new Error('the head of a mailbox is missing');
    return decodeMail(bytes);
  }
}
