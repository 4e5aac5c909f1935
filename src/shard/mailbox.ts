import type { DeviceKey } from '../core/identity.ts';
import { generateUuid, uuidBytesLength } from '../core/uuid.ts';
import {
  keyOfDevice,
  keyOfExpiry,
  keyOfMail,
  keyOfRequeued,
  readDevice,
  readSequence,
  sequenceKey,
} from './keys.ts';
import { decodeMail, encodeMail } from './mail-record.ts';
import {
  decodeMailbox,
  emptyMailbox,
  encodeMailbox,
  type MailboxRecord,
  type SettledVerb,
  settledMax,
} from './mailbox-record.ts';
import type { Activity, Enqueue, EnqueueOutcome, Mail, Settle, SettleOutcome } from './shard.ts';
import type { Tables } from './tables.ts';

const sequenceMax = 2 ** 48 - 1;
const lowBits = 2 ** 32;

/**
 * The mailboxes of a shard, inside its owner's write transaction. First in, first out by sequence; a mail's
 * id ends in the low 32 bits of the sequence it was accepted under, so that any mail is found by id without
 * an index. Only a requeued mail, which lives under a later sequence, leaves an entry in `requeued`.
 */
export class Mailboxes {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  enqueue(enqueue: Enqueue, nowMs: number): EnqueueOutcome {
    const { device, name, payload } = enqueue;
    if (!this.#tables.devices.doesExist(keyOfDevice(device))) return { result: 'device_not_found' };
    const record = this.#load(device);
    if (record.size >= enqueue.mailboxMailsMax) return { result: 'mailbox_full', mailboxSize: record.size };
    const id = generateUuid();
    id.writeUInt32BE(record.tail % lowBits, uuidBytesLength - 4);
    const mail: Mail = {
      id,
      name,
      payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
      requeueCount: 0,
      fetchCount: 0,
      acceptedAtMs: nowMs,
      expiresAtMs: nowMs + enqueue.lifeSeconds * 1_000,
      firstFetchedAtMs: undefined,
    };
    this.#tables.expiry.putSync(keyOfExpiry(mail.expiresAtMs, device, id), Buffer.alloc(0));
    this.#append(device, record, mail);
    record.size += 1;
    this.#store(device, record);
    return { result: 'queued', mailId: id, mailboxSize: record.size };
  }

  /** D15. Any mail of the mailbox may be settled, not only the head. */
  settle({ device, mailId, verb }: Settle): SettleOutcome {
    const record = this.#load(device);
    const sequence = this.#locate(device, record, mailId);
    if (sequence === undefined) {
      const settled = record.settled.find((one) => one.mailId.equals(mailId));
      const result = !settled ? 'not_found' : settled.verb === verb ? 'settled' : 'already_settled';
      return { result, mailboxSize: record.size };
    }
    const mail = this.#read(device, sequence);
    if (verb === 'requeue') this.#requeue(device, record, sequence, mail);
    else this.#remove(device, record, sequence, mail, verb);
    this.#store(device, record);
    return { result: 'settled', mailboxSize: record.size };
  }

  /** Removes mail whose life is over, oldest first, at most `limit`. Answers whose each was. */
  expire(nowMs: number, limit: number): DeviceKey[] {
    const due = [...this.#tables.expiry.getKeys({ end: sequenceKey(nowMs), limit })];
    return due.map((key) => {
      const device = readDevice(key, 6);
      const mailId = key.subarray(24);
      const record = this.#load(device);
      const sequence = this.#locate(device, record, mailId);
      if (sequence === undefined) this.#tables.expiry.removeSync(key);
      else {
        this.#remove(device, record, sequence, this.#read(device, sequence));
        this.#store(device, record);
      }
      return device;
    });
  }

  /** D13: fetches are counted in memory and reach the mail here, every few seconds. */
  noteFetches({ device, fetches }: Activity): void {
    const record = this.#load(device);
    for (const { mailId, count, firstMs } of fetches) {
      const sequence = this.#locate(device, record, mailId);
      if (sequence === undefined) continue;
      const mail = this.#read(device, sequence);
      mail.fetchCount += count;
      mail.firstFetchedAtMs ??= firstMs;
      this.#tables.mail.putSync(keyOfMail(device, sequence), encodeMail(mail));
    }
  }

  /** Everything of a device that is being deleted. */
  clear(device: DeviceKey): void {
    const record = this.#load(device);
    for (let left = record.size; left > 0; left -= 1) {
      this.#remove(device, record, record.head, this.#read(device, record.head));
    }
    this.#tables.mailboxes.removeSync(keyOfDevice(device));
  }

  #load(device: DeviceKey): MailboxRecord {
    const bytes = this.#tables.mailboxes.getBinary(keyOfDevice(device));
    return bytes === undefined ? emptyMailbox() : decodeMailbox(bytes);
  }

  #store(device: DeviceKey, record: MailboxRecord): void {
    const bytes = encodeMailbox(record);
    this.#tables.mailboxes.putSync(keyOfDevice(device), bytes);
  }

  #read(device: DeviceKey, sequence: number): Mail {
    const bytes = this.#tables.mail.getBinaryFast(keyOfMail(device, sequence));
    if (bytes === undefined) throw new Error(`no mail under sequence ${sequence}`);
    return decodeMail(bytes);
  }

  /** The sequence under which a mail of that id waits now. */
  #locate(device: DeviceKey, record: MailboxRecord, mailId: Uint8Array): number | undefined {
    if (record.size === 0) return undefined;
    const low = Buffer.from(mailId.buffer, mailId.byteOffset, uuidBytesLength).readUInt32BE(
      uuidBytesLength - 4,
    );
    const distance = (((low - record.head) % lowBits) + lowBits) % lowBits;
    const sequence = record.head + distance;
    if (sequence < record.tail) {
      const bytes = this.#tables.mail.getBinaryFast(keyOfMail(device, sequence));
      if (bytes?.subarray(0, uuidBytesLength).equals(mailId)) return sequence;
    }
    const moved = this.#tables.requeued.getBinaryFast(keyOfRequeued(device, mailId));
    return moved === undefined ? undefined : readSequence(moved, 0);
  }

  /** Puts the mail at the tail; the caller counts. */
  #append(device: DeviceKey, record: MailboxRecord, mail: Mail): number {
    const sequence = record.tail;
    this.#tables.mail.putSync(keyOfMail(device, sequence), encodeMail(mail));
    if (record.size === 0) record.head = sequence;
    record.tail += 1;
    return sequence;
  }

  /** D14: to the tail, same id, one more requeue. */
  #requeue(device: DeviceKey, record: MailboxRecord, sequence: number, mail: Mail): void {
    mail.requeueCount += 1;
    const moved = this.#append(device, record, mail);
    this.#tables.requeued.putSync(keyOfRequeued(device, mail.id), sequenceKey(moved));
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    if (sequence === record.head) record.head = this.#following(device, sequence);
  }

  #remove(device: DeviceKey, record: MailboxRecord, sequence: number, mail: Mail, verb?: SettledVerb): void {
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    this.#tables.expiry.removeSync(keyOfExpiry(mail.expiresAtMs, device, mail.id));
    if (mail.requeueCount > 0) this.#tables.requeued.removeSync(keyOfRequeued(device, mail.id));
    record.size -= 1;
    if (record.size === 0) record.head = record.tail;
    else if (sequence === record.head) record.head = this.#following(device, sequence);
    if (verb !== undefined)
      record.settled = [{ mailId: mail.id, verb }, ...record.settled].slice(0, settledMax);
  }

  /** The next live sequence of a mailbox that is not empty: nearly always the very next number. */
  #following(device: DeviceKey, sequence: number): number {
    if (this.#tables.mail.doesExist(keyOfMail(device, sequence + 1))) return sequence + 1;
    const start = Buffer.from(keyOfMail(device, sequence + 1));
    const end = Buffer.from(keyOfMail(device, sequenceMax));
    for (const key of this.#tables.mail.getKeys({ start, end, limit: 1 })) return readSequence(key, 18);
    throw new Error('mailbox size does not agree with its mail');
  }
}
