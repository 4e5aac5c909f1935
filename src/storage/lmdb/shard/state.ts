import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid, formatUuid } from '../../../core/uuid.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import { senderMark } from '../../../domain/idempotency.ts';
import type {
  Enqueue,
  EnqueueOutcome,
  MailOutcome,
  Replay,
  ReplayOutcome,
} from '../../../domain/mail/mail.ts';
import type { IngestOutcome } from '../../../domain/records/record.ts';
import { type Effects, sweepMailsMax, sweepRecordsMax } from '../../../domain/write.ts';
import { DeviceWrites } from '../devices/device-writes.ts';
import { changeSeen } from '../devices/seen-index.ts';
import { IdempotencyKeys } from '../environment/idempotency-keys.ts';
import { decodeSeen, encodeSeen } from '../layout/activity-record.ts';
import { keyOfDevice } from '../layout/keys.ts';
import { encodeMail } from '../layout/mail-record.ts';
import { ShardClock } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { IngestLog, type LogBatch } from '../log/ingest-log.ts';
import { storeTrimState } from '../log/log-trim-state.ts';
import type { TrimStep } from '../log/log-trimmer.ts';
import { BroadcastMail } from '../mail/broadcast-mail.ts';
import { DeadLetters } from '../mail/dead-letters.ts';
import { DedupeKeys } from '../mail/dedupe-keys.ts';
import { DelayedMail } from '../mail/delayed-mail.ts';
import { MailHistory } from '../mail/mail-history.ts';
import { MailRetention } from '../mail/mail-retention.ts';
import { Mailboxes } from '../mail/mailbox.ts';
import type { Append, Write, WriteAnswer } from './write.ts';

function noEffects(): Effects {
  return { changed: [], announcements: [], endedStreams: [], recheckedStreams: [], droppedLetters: 0 };
}

export interface StateOptions {
  idempotencyWindowSeconds: number;
  idempotencySkewSeconds: number;
  clockJumpGraceSeconds: number;
  delayedMailsPerDeviceMax: number;
  receiptRetentionSeconds: number;
  deadLetterRetentionSeconds: number;
  deadLettersPerFleetMax: number;
}

/**
 * The domain as the owner of a shard writes it: applies writes one after another inside one transaction and
 * collects what is to happen after the commit.
 */
export class ShardState {
  readonly clock: ShardClock;
  readonly #tables: Tables;
  readonly #devices: DeviceWrites;
  readonly #mailboxes: Mailboxes;
  readonly #letters: DeadLetters;
  readonly #ledger: MailHistory;
  readonly #retention: MailRetention;
  readonly #sent: DedupeKeys;
  readonly #broadcasts: BroadcastMail;
  readonly #log: IngestLog;
  readonly #keys: IdempotencyKeys;
  #effects: Effects = noEffects();

  constructor(tables: Tables, options: StateOptions) {
    this.#tables = tables;
    this.clock = new ShardClock(tables.times, options.clockJumpGraceSeconds);
    this.#broadcasts = new BroadcastMail(tables.broadcast);
    this.#devices = new DeviceWrites(tables, () => this.#effects);
    this.#log = new IngestLog(tables.log, () => this.clock.lifeMs());
    this.#letters = new DeadLetters(tables.dead, options.deadLettersPerFleetMax);
    this.#ledger = new MailHistory(tables.receipts, this.#letters, this.#log);
    const delayed = new DelayedMail(tables, options.delayedMailsPerDeviceMax);
    this.#mailboxes = new Mailboxes(tables, delayed, this.#ledger);
    this.#retention = new MailRetention(tables, this.#letters, options);
    this.#sent = new DedupeKeys(tables.sent);
    this.#keys = new IdempotencyKeys(tables.idempotency, tables.times, options);
  }

  apply(write: Write): WriteAnswer {
    switch (write.type) {
      case 'ingest':
        return this.#ingest(write.given);
      case 'settle':
        this.#effects.changed.push(write.given.device);
        return this.#mailboxes.settle(write.given, this.clock.lifeMs());
      case 'enqueue':
        return this.#enqueueOnce(write.given);
      case 'withdrawMail':
        this.#effects.changed.push(write.given.device);
        return this.#mailboxes.withdraw(write.given.device, write.given.mailId, this.clock.lifeMs());
      case 'replayMail':
        return this.#replay(write.given);
      case 'dropDeadLetter':
        return this.#letters.remove(write.given.device, write.given.mailId);
      case 'pruneDedupeKeys':
        return this.#sent.forget(write.given, sweepRecordsMax);
      case 'broadcast':
        return this.#broadcasts.send(write.given, (enqueue) => this.#enqueue(enqueue));
      case 'pruneBroadcasts':
        return this.#broadcasts.forget(write.given, sweepRecordsMax);
      case 'createDevices':
        return this.#devices.create(write.given);
      case 'changeDevice':
        return this.#devices.change(write.given.device, write.given.change) !== 'not_found';
      case 'changeDevices': {
        const { devices, change } = write.given;
        return devices.map((device) => this.#devices.change(device, change));
      }
      case 'putDevices':
        return write.given.map((put) => this.#devices.put(put));
      case 'deleteDevice': {
        const isDeleted = this.#devices.delete(write.given);
        if (isDeleted) this.#mailboxes.clear(write.given);
        return isDeleted;
      }
      case 'noteActivity':
        for (const activity of write.given) this.#noteActivity(activity);
        return undefined;
      case 'sweep':
        return this.#sweep(write.given);
      case 'trim':
        return this.#trim(write.given);
    }
  }

  /**
   * A batch of nothing but new records, as the one value that stores them all: it needs no look at the store
   * and so no transaction of ours. Undefined where it does need one.
   */
  appendOnly(batch: readonly { write: Write }[]): LogBatch | undefined {
    const records: Uint8Array[] = [];
    for (const { write } of batch) {
      if (write.type !== 'ingest' || write.given.idempotency !== undefined) return undefined;
      records.push(write.given.record);
    }
    return this.#log.batch(records);
  }

  /** Ends the transaction's writes. */
  flush(): void {
    this.#log.flush();
  }

  /** After a transaction that failed: nothing of it was. */
  rollback(): void {
    this.#log.rollback();
    this.#keys.rollback();
    this.#letters.rollback();
    this.#effects = noEffects();
  }

  /** What is due and stays where it is, since a record of it is damaged. */
  get stuckMails(): { expiry: number; due: number } {
    return this.#mailboxes.stuck;
  }

  /** After a commit: what it brought about, handed out once. */
  takeEffects(): Effects {
    const effects = this.#effects;
    effects.droppedLetters = this.#letters.takeDropped();
    this.#effects = noEffects();
    return effects;
  }

  #ingest({ device, idempotency, record }: Append): IngestOutcome {
    if (idempotency !== undefined) {
      const claim = this.#keys.claim(device, idempotency.key, idempotency.digest);
      if (claim !== 'stored') return claim;
    }
    this.#log.append(record);
    return 'stored';
  }

  /** D18 for senders: the key and the mail's id are committed with the mail. */
  #enqueueOnce(enqueue: Enqueue): EnqueueOutcome {
    const { device, idempotency } = enqueue;
    if (idempotency === undefined) return this.#enqueue(enqueue);
    const scope = device + senderMark;
    const known = this.#keys.find(scope, idempotency.key, idempotency.digest);
    if (typeof known === 'string') return { result: known };
    if (known !== undefined) return this.#mailboxes.repeated(device, copyUuid(known));
    const outcome = this.#enqueue(enqueue);
    if (outcome.result === 'queued') {
      this.#keys.remember(scope, idempotency.key, idempotency.digest, outcome.mailId);
    }
    return outcome;
  }

  #enqueue(enqueue: Enqueue): MailOutcome {
    const { device, name, deliverAtMs } = enqueue;
    const dueMs = deliverAtMs === undefined ? undefined : this.clock.lifeOf(deliverAtMs);
    const outcome = this.#mailboxes.enqueue(enqueue, this.clock.lifeMs(), dueMs);
    if (outcome.result !== 'queued' || outcome.repeated || outcome.isDelayed) return outcome;
    this.#announce(device, { ...outcome, name });
    return outcome;
  }

  #announce(device: DeviceKey, mail: { mailId: Uint8Array; name: string; mailboxSize: number }): void {
    const { mailId, name, mailboxSize } = mail;
    this.#effects.changed.push(device);
    const announcement = { mailId: formatUuid(mailId), name, mailboxSize };
    this.#effects.announcements.push({ device, announcement });
  }

  #replay({ device, mailId, ttlSeconds, mailboxMailsMax }: Replay): ReplayOutcome {
    const mail = this.#letters.mail(device, mailId);
    if (mail === undefined) return { result: 'mail_not_found' };
    const { name, payload, requeuesMax } = mail;
    const enqueue: Enqueue = { device, name, payload, ttlSeconds, mailboxMailsMax };
    if (requeuesMax !== undefined) enqueue.requeuesMax = requeuesMax;
    const outcome = this.#enqueue(enqueue);
    if (outcome.result !== 'queued') return outcome;
    this.#letters.remove(device, mailId);
    this.#ledger.note(device, encodeMail(mail), 'replayed', outcome.mailId);
    return outcome;
  }

  #noteActivity(activity: Activity): void {
    const { device, lastSeenMs } = activity;
    const bytes = this.#tables.activity.getBinaryFast(keyOfDevice(device));
    // Whoever was seen before is there; so each note costs one look and one put, as long as the index agrees.
    if (bytes === undefined && !this.#tables.devices.doesExist(keyOfDevice(device))) return;
    const before = bytes && decodeSeen(bytes);
    const record = encodeSeen(lastSeenMs, activity.address ?? before?.address);
    this.#tables.activity.putSync(keyOfDevice(device), record);
    changeSeen(this.#tables.seen, device, before?.lastSeenMs, lastSeenMs);
    if (activity.fetches.length > 0) this.#mailboxes.noteFetches(activity);
  }

  #sweep(what: 'due' | 'old'): boolean {
    const lifeMs = this.clock.lifeMs();
    const trustedMs = this.clock.trustedMs();
    this.clock.store();
    return what === 'due' ? this.#sweepDue(lifeMs, trustedMs) : this.#sweepOld(lifeMs, trustedMs);
  }

  /** What expires makes room for what is delivered. */
  #sweepDue(lifeMs: number, trustedMs: number): boolean {
    const expired = this.#mailboxes.expire(lifeMs, sweepMailsMax);
    this.#effects.changed.push(...expired);
    const delivered = this.#mailboxes.deliver(lifeMs, sweepMailsMax);
    for (const { device, accepted } of delivered) if (accepted) this.#announce(device, accepted);
    const secrets = this.#devices.retireSecrets(trustedMs, sweepRecordsMax);
    return (
      expired.length === sweepMailsMax || delivered.length === sweepMailsMax || secrets === sweepRecordsMax
    );
  }

  #sweepOld(lifeMs: number, trustedMs: number): boolean {
    const removed = [
      this.#keys.expire(trustedMs, sweepRecordsMax),
      this.#retention.sweepReceipts(lifeMs, sweepRecordsMax),
      this.#retention.sweepLetters(lifeMs, sweepRecordsMax),
    ];
    return removed.includes(sweepRecordsMax);
  }

  /** Batches that the log's end has left behind long ago: nobody else writes them. */
  #trim({ changes, state }: TrimStep): undefined {
    for (const { key, value } of changes) {
      if (value === undefined) this.#tables.log.removeSync(key);
      else this.#tables.log.putSync(key, value);
    }
    if (state !== undefined) storeTrimState(this.#tables.times, state);
  }
}
