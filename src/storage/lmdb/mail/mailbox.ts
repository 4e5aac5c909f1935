import { type DeviceKey, deviceKeyLength, fleetIdOf } from '../../../core/identity.ts';
import { copyUuid, generateUuid } from '../../../core/uuid.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import { isDeath } from '../../../domain/mail/end-rules.ts';
import type { MailEnd } from '../../../domain/mail/ended-mail.ts';
import { deliveredAs, enqueueDecision, expiryMs } from '../../../domain/mail/enqueue-rules.ts';
import type { Enqueue, MailOutcome, Settle, SettleOutcome, Withdrawal } from '../../../domain/mail/mail.ts';
import { hasRoomForMail, type MailBytesMax } from '../../../domain/mail/mail-bytes.ts';
import { unfetched } from '../../../domain/mail/mail-fields.ts';
import { writeSequence } from '../../../domain/mail/mail-sequence.ts';
import { isUntouched, markReplaceable } from '../../../domain/mail/replaceable-mails.ts';
import { repeatedSettle, settledAs, withdrawalOf } from '../../../domain/mail/settle-rules.ts';
import { rememberEnd, rememberedEnd } from '../../../domain/mail/settled-mails.ts';
import { DedupeKeys } from '../dedupe/dedupe-keys.ts';
import { keyOfDevice, sequenceBytes } from '../layout/keys.ts';
import {
  addFetches,
  addRequeue,
  copyHeader,
  copyOf,
  decodeHeader,
  encodeSent,
  readFirstFetchedAtMs,
  readName,
  readPayloadBytes,
  readRequeueCount,
  readRequeuesMax,
  setAccepted,
} from '../layout/mail-record.ts';
import type { Tables } from '../layout/tables.ts';
import type { DelayedMailTable } from './delayed-mail.ts';
import { DueEntries } from './delayed-mail.ts';
import { type FoundMail, readMail } from './find-mail.ts';
import type { MailBytes } from './mail-bytes.ts';
import type { MailHistory } from './mail-history.ts';
import { type LoadedMailbox, MailQueue } from './mail-queue.ts';
import type { ReplaceableMails } from './replaceable.ts';

/** Thrown before anything is changed, for a mail or a mailbox that does not decode. */
export class DamagedMail extends Error {}

/** A delayed mail that became due. */
export interface MailDelivery {
  device: DeviceKey;
  /** Undefined if its mailbox was full. */
  accepted: { mailId: Buffer; name: string; mailboxSize: number } | undefined;
}

interface MailboxParts {
  delayed: DelayedMailTable;
  replaceable: ReplaceableMails;
  history: MailHistory;
  bytes: MailBytes;
  bytesMax: MailBytesMax;
}

/** A copy of a mail that waits, and that a newer one of its key replaces; `found` in its mailbox, or delayed. */
interface ReplacedMail {
  mailId: Buffer;
  mail: Buffer;
  found?: FoundMail;
}

/** The life of a shard's mail from sending to its end, inside the owner's write transaction. */
export class Mailboxes {
  readonly #tables: Tables;
  readonly #queue: MailQueue;
  readonly #dedupeKeys: DedupeKeys;
  readonly #delayed: DelayedMailTable;
  readonly #replaceable: ReplaceableMails;
  readonly #history: MailHistory;
  readonly #bytes: MailBytes;
  readonly #bytesMax: MailBytesMax;
  readonly #expiry: DueEntries;
  readonly #due: DueEntries;

  constructor(tables: Tables, { delayed, replaceable, history, bytes, bytesMax }: MailboxParts) {
    this.#tables = tables;
    this.#queue = new MailQueue(tables, bytes);
    this.#bytes = bytes;
    this.#bytesMax = bytesMax;
    this.#dedupeKeys = new DedupeKeys(tables.sent);
    this.#delayed = delayed;
    this.#replaceable = replaceable;
    this.#history = history;
    this.#expiry = new DueEntries(tables.expiry, 'expired');
    this.#due = new DueEntries(tables.due, 'delivered');
  }

  /** `lifeMs`: now, in shard life time, here and below; `dueMs`: the delivery time, likewise. */
  enqueue(enqueue: Enqueue, lifeMs: number, dueMs = lifeMs): MailOutcome {
    const { device, dedupeKey, mailboxMailsMax, replaceKey } = enqueue;
    const record = this.#tables.devices.doesExist(keyOfDevice(device)) ? this.#queue.load(device) : undefined;
    const replaced = replaceKey === undefined ? undefined : this.#replaceableMail(device, record, replaceKey);
    const decision = enqueueDecision({
      nowMs: lifeMs,
      deliverAtMs: dueMs,
      mailboxMailsMax,
      delayedMailsMax: this.#delayed.perDeviceMax,
      known: dedupeKey && this.#dedupeKeys.mailIdOf(dedupeKey, device),
      mailbox: record,
      delayedMails: dueMs > lifeMs ? this.#delayed.count(device) : 0,
      fleetHasRoom: this.#hasRoom(enqueue, replaced),
      replaces: replaced && (replaced.found === undefined ? 'delayed' : 'queued'),
    });
    if (decision.does === 'repeat') return this.repeated(device, decision.mailId);
    if (decision.does === 'refuse') return decision.outcome;
    const { mailbox, isDelayed } = decision;
    const id = generateUuid();
    if (replaceKey !== undefined) markReplaceable(id);
    const place = isDelayed ? undefined : replaced?.found;
    if (!isDelayed) writeSequence(id, place?.sequence ?? mailbox.tail);
    if (replaced !== undefined) this.#replace(device, mailbox, replaced, place !== undefined, id, lifeMs);
    if (isDelayed) this.#delay(enqueue, id, dueMs);
    else if (replaced !== undefined && place !== undefined) {
      const mail = newMail(enqueue, id, lifeMs);
      this.#queue.replace(device, place, replaced.mailId, mail, id);
      this.#history.note(device, mail, 'queued');
    } else this.#accept(device, mailbox, newMail(enqueue, id, lifeMs), id, lifeMs);
    if (replaceKey !== undefined) this.#replaceable.add(device, id, replaceKey);
    if (dedupeKey !== undefined) this.#dedupeKeys.remember(dedupeKey, device, id);
    const inPlace = place === undefined ? {} : { isInPlace: true };
    return {
      result: 'queued',
      mailId: id,
      mailboxSize: mailbox.size,
      repeated: false,
      isDelayed,
      ...inPlace,
    };
  }

  /** The outcome for a mail that was queued before. */
  repeated(device: DeviceKey, mailId: Uint8Array): MailOutcome {
    const mailboxSize = this.#queue.load(device).size;
    const isDelayed = this.#delayed.has(device, mailId);
    return { result: 'queued', mailId, mailboxSize, repeated: true, isDelayed };
  }

  /** Settles any mail of the mailbox, not just the head (D15). @throws DamagedMail */
  settle(settlement: Settle, lifeMs: number): SettleOutcome {
    const { device, mailId, verb, fetched } = settlement;
    const { record, found } = this.#open(device, mailId);
    if (found === undefined) {
      // Fetches counted by another front end than the one that ended the mail, sent with a repetition.
      if (fetched !== undefined) this.#history.addLateFetches(device, mailId, fetched);
      return { result: repeatedSettle(verb, rememberedEnd(record, mailId)), mailboxSize: record.size };
    }
    const event = settledAs(verb, readRequeueCount(found.bytes), readRequeuesMax(found.bytes));
    if (event === 'requeued') {
      const mail = copyOf(found.bytes);
      addRequeue(mail);
      if (fetched !== undefined) addFetches(mail, fetched);
      this.#queue.moveToTail(device, record, found, mail, mailId, lifeMs);
      this.#queue.store(device, record);
      this.#replaceable.forget(device, mailId);
      this.#history.note(device, mail, event);
    } else this.#end(device, record, found, mailId, event, lifeMs, settlement);
    return { result: 'settled', mailboxSize: record.size };
  }

  /** Withdraws a mail. A later verb by the device gets the answer for mail settled by another verb. */
  withdraw(device: DeviceKey, mailId: Uint8Array, lifeMs: number): Withdrawal {
    const record = this.#queue.load(device);
    const found = this.#queue.find(device, record, mailId);
    const delayed = found === undefined ? this.#delayed.take(device, mailId) : undefined;
    if (found !== undefined) this.#end(device, record, found, mailId, 'withdrawn', lifeMs);
    else if (delayed !== undefined) this.#history.end(device, delayed.mail, 'withdrawn', lifeMs);
    const end = this.#history.endOf(device, mailId);
    return { result: withdrawalOf(end), mailboxSize: record.size };
  }

  /** Removes expired mail, oldest first, at most `limit`. Returns the device of each. @throws Error */
  expire(lifeMs: number, limit: number): DeviceKey[] {
    return this.#expiry.each(lifeMs, limit, (key, device) => {
      const mailId = mailIdOf(key);
      const record = this.#queue.load(device);
      const found = this.#queue.find(device, record, mailId);
      if (found === undefined) this.#tables.expiry.removeSync(key);
      else this.#end(device, record, found, mailId, 'expired', lifeMs);
      return device;
    });
  }

  /** Delivers due mail to its mailboxes, in order of time, at most `limit`. @throws Error */
  deliver(lifeMs: number, limit: number): MailDelivery[] {
    return this.#due.each(lifeMs, limit, (key, device) => {
      const mailId = mailIdOf(key);
      const delayed = this.#delayed.take(device, mailId);
      if (delayed === undefined) {
        this.#tables.due.removeSync(key);
        return { device, accepted: undefined };
      }
      const { mail, ttlSeconds, mailboxMailsMax } = delayed;
      const record = this.#queue.load(device);
      const event = deliveredAs(record.size, mailboxMailsMax);
      if (event === 'mailbox_full') {
        this.#history.end(device, mail, event, lifeMs);
        return { device, accepted: undefined };
      }
      setAccepted(mail, lifeMs, expiryMs(lifeMs, ttlSeconds));
      this.#accept(device, record, mail, mailId, lifeMs);
      return { device, accepted: { mailId, name: readName(mail), mailboxSize: record.size } };
    });
  }

  /** The number of entries that `expire` and `deliver` skip, since a record is damaged. */
  get stuck(): { expiry: number; due: number } {
    return { expiry: this.#expiry.stuck, due: this.#due.stuck };
  }

  /**
   * Adds the fetches counted in memory (D13), reported every few seconds, to a mail or its receipt. One that was replaced
   * just before is not answered: its fetch is of the mail in its place, which is.
   */
  noteFetches({ device, fetches }: Activity): void {
    const record = this.#queue.load(device);
    for (const { mailId, ...fetched } of fetches) {
      const found =
        this.#queue.find(device, record, mailId) ?? this.#queue.findReplacement(device, record, mailId);
      if (found === undefined) this.#history.addLateFetches(device, mailId, fetched);
      else {
        const mail = copyOf(found.bytes);
        const isFirst = readFirstFetchedAtMs(mail) === undefined;
        addFetches(mail, fetched);
        this.#queue.change(device, found, mail);
        if (!isFirst) continue;
        this.#replaceable.forget(device, copyUuid(mail));
        this.#history.note(device, mail, 'fetched');
      }
    }
  }

  /**
   * Removes everything of a device that is being deleted, except receipts and dead letters. The time does not matter to a
   * mailbox that goes.
   */
  clear(device: DeviceKey): void {
    const record = this.#queue.load(device);
    for (let left = record.size; left > 0; left -= 1) {
      const bytes = readMail(this.#tables, device, record.head);
      if (bytes === undefined) throw new Error(`no mail under sequence ${record.head}`);
      const mailId = copyUuid(bytes);
      this.#queue.remove(device, record, { sequence: record.head, bytes }, mailId, 0);
    }
    this.#queue.delete(device, record);
    this.#delayed.clear(device);
    this.#replaceable.clear(device);
  }

  /** The mail of a key that waits and was never fetched (D31). */
  #replaceableMail(
    device: DeviceKey,
    record: LoadedMailbox | undefined,
    key: string,
  ): ReplacedMail | undefined {
    const mailId = record && this.#replaceable.mailOf(device, key);
    if (record === undefined || mailId === undefined) return undefined;
    const found = this.#queue.find(device, record, mailId);
    if (found === undefined) {
      const delayed = this.#delayed.find(device, mailId);
      return delayed && { mailId, mail: delayed.mail };
    }
    const mail = copyOf(found.bytes);
    if (!isUntouched(decodeHeader(mail))) return undefined;
    return { mailId, mail, found: { sequence: found.sequence, bytes: mail } };
  }

  /** Ends a mail that is replaced. Its place in the mailbox stays for the new one if that is in place. */
  #replace(
    device: DeviceKey,
    record: LoadedMailbox,
    { mailId, mail, found }: ReplacedMail,
    isInPlace: boolean,
    newMailId: Uint8Array,
    lifeMs: number,
  ): void {
    if (found === undefined) this.#delayed.take(device, mailId);
    else if (!isInPlace) {
      this.#queue.remove(device, record, found, mailId, lifeMs);
      this.#queue.store(device, record);
    }
    this.#history.end(device, mail, 'replaced', lifeMs, { newMailId });
  }

  /** True if its fleet may have the bytes of this mail. */
  #hasRoom({ device, payload }: Enqueue, replaced: ReplacedMail | undefined): boolean {
    const fleetId = fleetIdOf(device);
    const replacedBytes = replaced && readPayloadBytes(replaced.mail);
    return hasRoomForMail(this.#bytes.of(fleetId), payload.length, this.#bytesMax(fleetId), replacedBytes);
  }

  #open(device: DeviceKey, mailId: Uint8Array): { record: LoadedMailbox; found: FoundMail | undefined } {
    try {
      const record = this.#queue.load(device);
      return { record, found: this.#queue.find(device, record, mailId) };
    } catch (cause) {
      throw new DamagedMail(`a mail of ${device} cannot be settled`, { cause });
    }
  }

  #delay(enqueue: Enqueue, id: Buffer, deliverAtMs: number): void {
    const { device, ttlSeconds, mailboxMailsMax } = enqueue;
    const mail = newMail(enqueue, id, undefined);
    this.#delayed.put(device, { deliverAtMs, ttlSeconds, mailboxMailsMax, mail });
    this.#history.note(device, mail, 'delayed');
  }

  #accept(device: DeviceKey, record: LoadedMailbox, mail: Buffer, id: Buffer, lifeMs: number): void {
    this.#queue.add(device, record, mail, id, lifeMs);
    this.#queue.store(device, record);
    this.#history.note(device, mail, 'queued');
  }

  /** Removes a mail from its mailbox for good. */
  #end(
    device: DeviceKey,
    record: LoadedMailbox,
    found: FoundMail,
    mailId: Uint8Array,
    end: MailEnd,
    lifeMs: number,
    { fetched, reply }: Pick<Settle, 'fetched' | 'reply'> = {},
  ): void {
    const mail = isDeath(end) ? copyOf(found.bytes) : copyHeader(found.bytes);
    if (fetched !== undefined) addFetches(mail, fetched);
    this.#queue.remove(device, record, found, mailId, lifeMs);
    rememberEnd(record, mailId, end);
    this.#queue.store(device, record);
    this.#history.end(device, mail, end, lifeMs, { reply });
  }
}

/** `acceptedAtMs`: undefined for a delayed mail. */
function newMail(enqueue: Enqueue, id: Buffer, acceptedAtMs: number | undefined): Buffer {
  return encodeSent(enqueue, {
    id,
    acceptedAtMs: acceptedAtMs ?? 0,
    expiresAtMs: acceptedAtMs === undefined ? 0 : expiryMs(acceptedAtMs, enqueue.ttlSeconds),
    ...unfetched,
  });
}

function mailIdOf(key: Buffer): Buffer {
  return copyUuid(key.subarray(sequenceBytes + deviceKeyLength));
}
