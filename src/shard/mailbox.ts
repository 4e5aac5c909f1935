import { type DeviceKey, deviceKeyLength } from '../core/identity.ts';
import { copyUuid, generateUuid, uuidBytesLength } from '../core/uuid.ts';
import {
  keyOfDevice,
  keyOfExpiry,
  keyOfMail,
  keyOfRequeued,
  readDevice,
  readSequence,
  sequenceBytes,
  sequenceKey,
} from './keys.ts';
import {
  checkMail,
  encodeMail,
  fetched,
  readExpiresAtMs,
  readRequeueCount,
  requeued,
} from './mail-record.ts';
import { sequenceFrom, writeSequence } from './mail-sequence.ts';
import {
  decodeMailbox,
  emptyMailbox,
  encodeMailbox,
  type MailboxRecord,
  rememberSettled,
  settledVerb,
} from './mailbox-record.ts';
import { SentMail } from './sent-mail.ts';
import type { Activity, Enqueue, EnqueueOutcome, Mail, Settle, SettleOutcome } from './shard.ts';
import type { Tables } from './tables.ts';

/** A mail in its place; its bytes are a view into the map, good until the next read or write. */
interface FoundMail {
  sequence: number;
  bytes: Buffer;
}

const sequenceMax = 2 ** 48 - 1;
/** Damaged entries to know; more of them than this would not be a matter for a running server. */
const unexpirableMax = 1_000;

/**
 * The mailboxes of a shard, inside its owner's write transaction. First in, first out by sequence; a mail's
 * id ends in the low 32 bits of the sequence it was accepted under, so that any mail is found by id without
 * an index. Only a requeued mail, which lives under a later sequence, leaves an entry in `requeued`.
 */
export class Mailboxes {
  readonly #tables: Tables;
  readonly #sent: SentMail;
  /** Entries of `expiry` whose mail cannot be removed since a record is damaged. */
  readonly #unexpirable = new Set<string>();

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#sent = new SentMail(tables.sent);
  }

  /** `lifeMs`: now, by the shard's own clock. */
  enqueue(enqueue: Enqueue, lifeMs: number): EnqueueOutcome {
    const { device, name, payload, once } = enqueue;
    const before = once && this.#sent.mailIdOf(once, device);
    if (before !== undefined) {
      return { result: 'queued', mailId: before, mailboxSize: this.#load(device).size, repeated: true };
    }
    if (!this.#tables.devices.doesExist(keyOfDevice(device))) return { result: 'device_not_found' };
    const record = this.#load(device);
    if (record.size >= enqueue.mailboxMailsMax) return { result: 'mailbox_full', mailboxSize: record.size };
    const id = generateUuid();
    writeSequence(id, record.tail);
    const mail: Mail = {
      id,
      name,
      payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
      requeueCount: 0,
      fetchCount: 0,
      acceptedAtMs: lifeMs,
      expiresAtMs: lifeMs + enqueue.lifeSeconds * 1_000,
      firstFetchedAtMs: undefined,
    };
    this.#tables.expiry.putSync(keyOfExpiry(mail.expiresAtMs, device, id), Buffer.alloc(0));
    this.#append(device, record, encodeMail(mail));
    record.size += 1;
    this.#store(device, record);
    if (once !== undefined) this.#sent.remember(once, device, id);
    return { result: 'queued', mailId: id, mailboxSize: record.size, repeated: false };
  }

  size(device: DeviceKey): number {
    return this.#load(device).size;
  }

  /** D15. Any mail of the mailbox may be settled, not only the head. */
  settle({ device, mailId, verb }: Settle): SettleOutcome {
    const record = this.#load(device);
    const found = this.#find(device, record, mailId);
    if (found === undefined) {
      const before = settledVerb(record, mailId);
      const result = !before ? 'not_found' : before === verb ? 'settled' : 'already_settled';
      return { result, mailboxSize: record.size };
    }
    if (verb === 'requeue') this.#requeue(device, record, found, mailId);
    else {
      this.#remove(device, record, found, mailId);
      rememberSettled(record, mailId, verb);
    }
    this.#store(device, record);
    return { result: 'settled', mailboxSize: record.size };
  }

  /**
   * Removes mail whose life is over, oldest first, at most `limit`. Answers whose each was.
   * @throws Error at damaged records, once: the next call leaves out what this one stopped at.
   */
  expire(lifeMs: number, limit: number): DeviceKey[] {
    const end = sequenceKey(lifeMs);
    const due = [...this.#tables.expiry.getKeys({ end, limit: limit + this.#unexpirable.size })];
    const expirable = due.filter((key) => !this.#unexpirable.has(key.toString('latin1')));
    return expirable.slice(0, limit).map((key) => {
      try {
        return this.#expire(key);
      } catch (cause) {
        if (this.#unexpirable.size < unexpirableMax) this.#unexpirable.add(key.toString('latin1'));
        throw new Error(`the expired mail of ${readDevice(key, sequenceBytes)} cannot be removed`, { cause });
      }
    });
  }

  /** How many entries `expire` leaves where they are. */
  get unexpirable(): number {
    return this.#unexpirable.size;
  }

  /** D13: fetches are counted in memory and reach the mail here, every few seconds. */
  noteFetches({ device, fetches }: Activity): void {
    const record = this.#load(device);
    for (const { mailId, count, firstMs } of fetches) {
      const found = this.#find(device, record, mailId);
      if (found === undefined) continue;
      this.#tables.mail.putSync(keyOfMail(device, found.sequence), fetched(found.bytes, count, firstMs));
    }
  }

  /** Everything of a device that is being deleted. */
  clear(device: DeviceKey): void {
    const record = this.#load(device);
    for (let left = record.size; left > 0; left -= 1) {
      const bytes = this.#read(device, record.head);
      if (bytes === undefined) throw new Error(`no mail under sequence ${record.head}`);
      const mailId = copyUuid(bytes);
      this.#remove(device, record, { sequence: record.head, bytes }, mailId);
    }
    this.#tables.mailboxes.removeSync(keyOfDevice(device));
  }

  #expire(key: Buffer): DeviceKey {
    const device = readDevice(key, sequenceBytes);
    const mailId = key.subarray(sequenceBytes + deviceKeyLength);
    const record = this.#load(device);
    const found = this.#find(device, record, mailId);
    if (found === undefined) this.#tables.expiry.removeSync(key);
    else {
      this.#remove(device, record, found, mailId);
      this.#store(device, record);
    }
    return device;
  }

  #load(device: DeviceKey): MailboxRecord {
    const bytes = this.#tables.mailboxes.getBinary(keyOfDevice(device));
    return bytes === undefined ? emptyMailbox() : decodeMailbox(bytes);
  }

  #store(device: DeviceKey, record: MailboxRecord): void {
    const bytes = encodeMailbox(record);
    this.#tables.mailboxes.putSync(keyOfDevice(device), bytes);
  }

  /** A view into the map, good until the next read. */
  #read(device: DeviceKey, sequence: number): Buffer | undefined {
    const bytes = this.#tables.mail.getBinaryFast(keyOfMail(device, sequence));
    if (bytes !== undefined) checkMail(bytes);
    return bytes;
  }

  /** Where a mail of that id waits now. */
  #find(device: DeviceKey, record: MailboxRecord, mailId: Uint8Array): FoundMail | undefined {
    if (record.size === 0) return undefined;
    const sequence = sequenceFrom(record.head, mailId);
    if (sequence < record.tail) {
      const bytes = this.#read(device, sequence);
      if (bytes?.subarray(0, uuidBytesLength).equals(mailId)) return { sequence, bytes };
    }
    const moved = this.#tables.requeued.getBinaryFast(keyOfRequeued(device, mailId));
    if (moved === undefined) return undefined;
    const movedTo = readSequence(moved, 0);
    const bytes = this.#read(device, movedTo);
    if (bytes === undefined) throw new Error(`no mail under sequence ${movedTo}`);
    return { sequence: movedTo, bytes };
  }

  /** Puts the mail at the tail; the caller counts. */
  #append(device: DeviceKey, record: MailboxRecord, mail: Buffer): number {
    const sequence = record.tail;
    this.#tables.mail.putSync(keyOfMail(device, sequence), mail);
    if (record.size === 0) record.head = sequence;
    record.tail += 1;
    return sequence;
  }

  /** D14: to the tail, same id, one more requeue. */
  #requeue(
    device: DeviceKey,
    record: MailboxRecord,
    { sequence, bytes }: FoundMail,
    mailId: Uint8Array,
  ): void {
    const moved = this.#append(device, record, requeued(bytes));
    this.#tables.requeued.putSync(keyOfRequeued(device, mailId), sequenceKey(moved));
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    if (sequence === record.head) record.head = this.#following(device, sequence);
  }

  #remove(
    device: DeviceKey,
    record: MailboxRecord,
    { sequence, bytes }: FoundMail,
    mailId: Uint8Array,
  ): void {
    const expiresAtMs = readExpiresAtMs(bytes);
    const wasRequeued = readRequeueCount(bytes) > 0;
    this.#tables.mail.removeSync(keyOfMail(device, sequence));
    this.#tables.expiry.removeSync(keyOfExpiry(expiresAtMs, device, mailId));
    if (wasRequeued) this.#tables.requeued.removeSync(keyOfRequeued(device, mailId));
    record.size -= 1;
    if (record.size === 0) record.head = record.tail;
    else if (sequence === record.head) record.head = this.#following(device, sequence);
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
