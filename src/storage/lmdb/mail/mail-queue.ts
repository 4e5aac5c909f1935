import type { DeviceKey } from '../../../core/identity.ts';
import { emptyMailbox, type MailboxRecord, sequenceMax } from '../../../domain/mail/mail-fields.ts';
import { hasSequence, sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { isMarked } from '../../../domain/mail/replaceable-mails.ts';
import {
  keyOfDevice,
  keyOfDeviceMail,
  keyOfExpiry,
  keyOfMail,
  readSequence,
  sequenceKey,
} from '../layout/keys.ts';
import { readExpiresAtMs, readPayloadBytes, readRequeueCount } from '../layout/mail-record.ts';
import { decodeMailbox, encodeMailbox } from '../layout/mailbox-record.ts';
import type { Tables } from '../layout/tables.ts';
import { type FoundMail, findMail, readMail } from './find-mail.ts';
import type { MailBytes } from './mail-bytes.ts';
import { changeWaiting } from './waiting-index.ts';

/** A mailbox as it is being changed. */
export interface LoadedMailbox extends MailboxRecord {
  /** The time under which the index of waiting mailboxes has it. */
  indexedSinceMs: number | undefined;
}

const nothing = Buffer.alloc(0);

/**
 * The queues of a shard's mailboxes, inside its owner's write transaction. First in, first out by sequence; a mail's
 * id ends in the low 32 bits of the sequence it was accepted under, so that it is found by id without an index. Only
 * a mail under another sequence, since it was requeued or got its id long before its mailbox accepted it, has an
 * entry in `requeued`. The caller stores the changed mailbox record at the end. `lifeMs` is now, in shard life time.
 */
export class MailQueue {
  readonly #tables: Tables;
  readonly #bytes: MailBytes;

  constructor(tables: Tables, bytes: MailBytes) {
    this.#tables = tables;
    this.#bytes = bytes;
  }

  load(device: DeviceKey): LoadedMailbox {
    const bytes = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    const record = bytes === undefined ? emptyMailbox() : decodeMailbox(bytes);
    // Not a spread copy: with one, mail's cycle cost a fifth more.
    return Object.assign(record, { indexedSinceMs: record.waitingSinceMs });
  }

  store(device: DeviceKey, record: LoadedMailbox): void {
    const bytes = encodeMailbox(record);
    this.#tables.mailboxes.putSync(keyOfDevice(device), bytes);
    changeWaiting(this.#tables.waiting, device, record.indexedSinceMs, record.waitingSinceMs);
    record.indexedSinceMs = record.waitingSinceMs;
  }

  /** Removes the record of a mailbox. */
  delete(device: DeviceKey, { indexedSinceMs }: LoadedMailbox): void {
    this.#tables.mailboxes.removeSync(keyOfDevice(device));
    changeWaiting(this.#tables.waiting, device, indexedSinceMs, undefined);
  }

  find(device: DeviceKey, record: MailboxRecord, mailId: Uint8Array): FoundMail | undefined {
    return findMail(this.#tables, device, record, mailId);
  }

  /** The mail that stands where a replaced one stood, since both ids end in the same sequence. */
  findReplacement(device: DeviceKey, record: MailboxRecord, replacedId: Uint8Array): FoundMail | undefined {
    if (record.size === 0 || !isMarked(replacedId)) return undefined;
    const sequence = sequenceFrom(record.head, replacedId);
    const bytes = sequence < record.tail ? readMail(this.#tables, device, sequence) : undefined;
    return bytes && isMarked(bytes) && hasSequence(bytes, sequence) ? { sequence, bytes } : undefined;
  }

  /** Appends a new mail. */
  add(device: DeviceKey, record: MailboxRecord, mail: Buffer, mailId: Buffer, lifeMs: number): void {
    this.#tables.expiry.putSync(keyOfExpiry(readExpiresAtMs(mail), device, mailId), nothing);
    if (record.size === 0) record.waitingSinceMs = lifeMs;
    const sequence = this.#append(device, record, mail);
    if (!hasSequence(mailId, sequence)) this.#noteMoved(device, mailId, sequence);
    record.size += 1;
    this.#bytes.add(device, readPayloadBytes(mail));
  }

  /** Replaces a mail, with the same expiry. */
  change(device: DeviceKey, { sequence }: FoundMail, mail: Buffer): void {
    this.#tables.mail.putSync(keyOfMail(device, sequence), mail);
  }

  /** Puts a new mail where another one stands, whose id was `replacedId`. The new id is of that place. */
  replace(
    device: DeviceKey,
    { sequence, bytes }: FoundMail,
    replacedId: Uint8Array,
    mail: Buffer,
    mailId: Buffer,
  ): void {
    this.#tables.expiry.removeSync(keyOfExpiry(readExpiresAtMs(bytes), device, replacedId));
    if (!hasSequence(replacedId, sequence)) {
      this.#tables.requeued.removeSync(keyOfDeviceMail(device, replacedId));
    }
    this.#tables.mail.putSync(keyOfMail(device, sequence), mail);
    this.#tables.expiry.putSync(keyOfExpiry(readExpiresAtMs(mail), device, mailId), nothing);
    this.#bytes.remove(device, readPayloadBytes(bytes));
    this.#bytes.add(device, readPayloadBytes(mail));
  }

  /** Moves a changed mail to the tail. */
  moveToTail(
    device: DeviceKey,
    record: MailboxRecord,
    { sequence }: FoundMail,
    mail: Buffer,
    mailId: Uint8Array,
    lifeMs: number,
  ): void {
    this.#noteMoved(device, mailId, this.#append(device, record, mail));
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    if (sequence === record.head) this.#advance(device, record, lifeMs);
  }

  remove(
    device: DeviceKey,
    record: MailboxRecord,
    { sequence, bytes }: FoundMail,
    mailId: Uint8Array,
    lifeMs: number,
  ): void {
    const expiresAtMs = readExpiresAtMs(bytes);
    const payloadBytes = readPayloadBytes(bytes);
    const isRelocated = readRequeueCount(bytes) > 0 || !hasSequence(mailId, sequence);
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    this.#tables.expiry.removeSync(keyOfExpiry(expiresAtMs, device, mailId));
    if (isRelocated) this.#tables.requeued.removeSync(keyOfDeviceMail(device, mailId));
    record.size -= 1;
    this.#bytes.remove(device, payloadBytes);
    if (record.size === 0) {
      record.head = record.tail;
      record.waitingSinceMs = undefined;
    } else if (sequence === record.head) this.#advance(device, record, lifeMs);
  }

  /** The next mail becomes the head, and begins to wait. */
  #advance(device: DeviceKey, record: MailboxRecord, lifeMs: number): void {
    record.head = this.#following(device, record.head);
    record.waitingSinceMs = lifeMs;
  }

  #append(device: DeviceKey, record: MailboxRecord, mail: Buffer): number {
    const sequence = record.tail;
    this.#tables.mail.putSync(keyOfMail(device, sequence), mail);
    if (record.size === 0) record.head = sequence;
    record.tail += 1;
    return sequence;
  }

  #noteMoved(device: DeviceKey, mailId: Uint8Array, sequence: number): void {
    this.#tables.requeued.putSync(keyOfDeviceMail(device, mailId), sequenceKey(sequence));
  }

  /** The next live sequence of a mailbox that is not empty: nearly always the next number. */
  #following(device: DeviceKey, sequence: number): number {
    if (this.#tables.mail.doesExist(keyOfMail(device, sequence + 1))) return sequence + 1;
    const start = Buffer.from(keyOfMail(device, sequence + 1));
    const end = Buffer.from(keyOfMail(device, sequenceMax));
    for (const key of this.#tables.mail.getKeys({ start, end, limit: 1 })) return readSequence(key, 18);
    throw new Error('mailbox size does not agree with its mail');
  }
}
