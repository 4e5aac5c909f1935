import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid, formatUuid } from '../../../core/uuid.ts';
import type { Activity } from '../../../domain/devices/device.ts';
import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import { senderMark } from '../../../domain/idempotency.ts';
import { replayedMail } from '../../../domain/mail/enqueue-rules.ts';
import type {
  Enqueue,
  EnqueueOutcome,
  MailOutcome,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
} from '../../../domain/mail/mail.ts';
import { type MailBytesMax, unlimitedMailBytes } from '../../../domain/mail/mail-bytes.ts';
import type { IngestOutcome } from '../../../domain/records/record.ts';
import type { SyncWritten } from '../../../domain/sync/sync.ts';
import { type Effects, sweepMailsMax, sweepRecordsMax } from '../../../domain/write.ts';
import { IdempotencyKeys } from '../../tables/idempotency-keys.ts';
import { BroadcastMarks } from '../dedupe/broadcast-marks.ts';
import { DedupeKeys } from '../dedupe/dedupe-keys.ts';
import { DeviceWrites } from '../devices/device-writes.ts';
import { changeSeen } from '../devices/seen-index.ts';
import { LmdbRows } from '../environment/stored-tables.ts';
import { decodeSeen, encodeSeen } from '../layout/activity-record.ts';
import { keyOfDevice } from '../layout/keys.ts';
import { encodeMail } from '../layout/mail-record.ts';
import { ShardClock } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { IngestLog, type LogBatch } from '../log/ingest-log.ts';
import type { IndexStep } from '../log/log-indexer.ts';
import { countBehind } from '../log/log-record.ts';
import { storeTrimState } from '../log/log-trim-state.ts';
import type { TrimStep } from '../log/log-trimmer.ts';
import { QueuePositions } from '../log/queue-positions.ts';
import { DeadLetters } from '../mail/dead-letters.ts';
import { DelayedMailTable } from '../mail/delayed-mail.ts';
import { MailBytes } from '../mail/mail-bytes.ts';
import { MailHistory } from '../mail/mail-history.ts';
import { MailRetention } from '../mail/mail-retention.ts';
import { DamagedMail, Mailboxes } from '../mail/mailbox.ts';
import { ReplaceableMails } from '../mail/replaceable.ts';
import type { Append, AppendSync, Write, WriteAnswer } from './write.ts';

function noEffects(): Effects {
  return { changed: [], announcements: [], endedStreams: [], recheckedStreams: [], droppedLetters: 0 };
}

export interface StateOptions extends IdempotencyLimits {
  clockJumpGraceSeconds: number;
  delayedMailsPerDeviceMax: number;
  receiptRetentionSeconds: number;
  deadLetterRetentionSeconds: number;
  deadLettersPerFleetMax: number;
  /** Absent: no fleet has a limit. */
  mailBytesMax?: MailBytesMax;
}

/**
 * Applies writes to a shard's tables, one after another within one transaction, and collects the effects to follow
 * the commit.
 */
export class ShardState {
  readonly clock: ShardClock;
  readonly #tables: Tables;
  readonly #devices: DeviceWrites;
  readonly #mailboxes: Mailboxes;
  readonly #mailBytes: MailBytes;
  readonly #letters: DeadLetters;
  readonly #history: MailHistory;
  readonly #retention: MailRetention;
  readonly #dedupeKeys: DedupeKeys;
  readonly #broadcasts: BroadcastMarks;
  readonly #log: IngestLog;
  readonly #queues: QueuePositions;
  readonly #keys: IdempotencyKeys;
  #effects: Effects = noEffects();

  constructor(tables: Tables, options: StateOptions) {
    this.#tables = tables;
    this.clock = new ShardClock(tables.times, options.clockJumpGraceSeconds);
    this.#broadcasts = new BroadcastMarks(tables.broadcast);
    this.#devices = new DeviceWrites(tables, () => this.#effects);
    this.#log = new IngestLog(tables.log, () => this.clock.lifeMs());
    this.#queues = new QueuePositions(tables);
    this.#letters = new DeadLetters(tables.dead, options.deadLettersPerFleetMax);
    const replaceable = new ReplaceableMails(tables.replaceable);
    this.#history = new MailHistory(tables, this.#letters, replaceable, this.#log);
    const bytes = new MailBytes(tables.fleetMail);
    this.#mailBytes = bytes;
    this.#mailboxes = new Mailboxes(tables, {
      delayed: new DelayedMailTable(tables, bytes, options.delayedMailsPerDeviceMax),
      replaceable,
      history: this.#history,
      bytes,
      bytesMax: options.mailBytesMax ?? unlimitedMailBytes,
    });
    this.#retention = new MailRetention(tables, this.#letters, options);
    this.#dedupeKeys = new DedupeKeys(tables.sent);
    this.#keys = new IdempotencyKeys(new LmdbRows(tables.idempotency), new LmdbRows(tables.times), options);
  }

  apply(write: Write): WriteAnswer {
    switch (write.type) {
      case 'ingest':
        return this.#ingest(write.params);
      case 'sync':
        return this.#sync(write.params);
      case 'settle':
        this.#effects.changed.push(write.params.device);
        return this.#mailboxes.settle(write.params, this.clock.lifeMs());
      case 'enqueue':
        return this.#enqueueOnce(write.params);
      case 'withdrawMail':
        this.#effects.changed.push(write.params.device);
        return this.#mailboxes.withdraw(write.params.device, write.params.mailId, this.clock.lifeMs());
      case 'replayMail':
        return this.#replay(write.params);
      case 'dropDeadLetter':
        return this.#letters.remove(write.params.device, write.params.mailId);
      case 'pruneDedupeKeys':
        return this.#dedupeKeys.prune(write.params, sweepRecordsMax);
      case 'broadcast':
        return this.#broadcasts.send(write.params, (enqueue) => this.#enqueue(enqueue));
      case 'forgetBroadcast':
        return this.#broadcasts.forget(write.params, sweepRecordsMax);
      case 'createDevices':
        return this.#devices.create(write.params);
      case 'changeDevice':
        return this.#devices.change(write.params.device, write.params.change) !== 'not_found';
      case 'changeDevices': {
        const { devices, change } = write.params;
        return devices.map((device) => this.#devices.change(device, change));
      }
      case 'putDevices':
        return write.params.map((put) => this.#devices.put(put));
      case 'deleteDevice': {
        const isDeleted = this.#devices.delete(write.params);
        if (isDeleted) this.#mailboxes.clear(write.params);
        return isDeleted;
      }
      case 'noteActivity':
        for (const activity of write.params) this.#noteActivity(activity);
        return undefined;
      case 'sweep':
        return this.#sweep(write.params);
      case 'trim':
        return this.#trim(write.params);
      case 'index':
        return this.#index(write.params);
    }
  }

  /**
   * Encodes a batch of plain records as the one value that stores them all, which needs no read and so no transaction
   * of ours. Undefined if a write needs one.
   */
  appendOnly(batch: readonly { write: Write }[]): LogBatch | undefined {
    const records: Uint8Array[] = [];
    for (const { write } of batch) {
      if (write.type !== 'ingest' || write.params.idempotency !== undefined) return undefined;
      records.push(write.params.record);
    }
    return this.#log.batch(records);
  }

  /** Completes the transaction's writes. */
  flush(): void {
    this.#log.flush();
    this.#mailBytes.flush();
  }

  /** Discards the state of a failed transaction. */
  rollback(): void {
    this.#log.rollback();
    this.#keys.rollback();
    this.#letters.rollback();
    this.#mailBytes.rollback();
    this.#effects = noEffects();
  }

  /** Due mail that is stuck, since a record is damaged. */
  get stuckMails(): { expiry: number; due: number } {
    return this.#mailboxes.stuck;
  }

  /** Returns the effects of the last commit, once. */
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

  #sync({ device, records, queue, settlements }: AppendSync): SyncWritten {
    const step = queue && this.#queues.advance(device, queue, records.ends.length);
    const known = step?.known ?? 0;
    const count = countBehind(records, known);
    if (count > 0) this.#log.append(records.bytes.subarray(records.ends[known - 1] ?? 0), count);
    if (settlements.length > 0) this.#effects.changed.push(device);
    const lifeMs = this.clock.lifeMs();
    const settled = settlements.map((one) => this.#settleSound({ device, ...one }, lifeMs));
    return { queue: step?.position, settled };
  }

  /** A damaged mail must not have what a device sends along be refused with it, again and again. */
  #settleSound(settlement: Settle, lifeMs: number): SettleOutcome | undefined {
    try {
      return this.#mailboxes.settle(settlement, lifeMs);
    } catch (error) {
      if (error instanceof DamagedMail) return undefined;
      throw error;
    }
  }

  /** Applies D18 for senders: commits the key and the mail's id with the mail. */
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
    if (enqueue.replaceKey !== undefined) this.#effects.changed.push(device);
    if (outcome.result !== 'queued' || outcome.repeated || outcome.isDelayed || outcome.isInPlace)
      return outcome;
    this.#announce(device, { ...outcome, name });
    return outcome;
  }

  #announce(device: DeviceKey, mail: { mailId: Uint8Array; name: string; mailboxSize: number }): void {
    const { mailId, name, mailboxSize } = mail;
    this.#effects.changed.push(device);
    const announcement = { mailId: formatUuid(mailId), name, mailboxSize };
    this.#effects.announcements.push({ device, announcement });
  }

  #replay(replay: Replay): ReplayOutcome {
    const { device, mailId } = replay;
    const mail = this.#letters.mail(device, mailId);
    if (mail === undefined) return { result: 'mail_not_found' };
    const outcome = this.#enqueue(replayedMail(replay, mail));
    if (outcome.result !== 'queued') return outcome;
    this.#letters.remove(device, mailId);
    this.#history.note(device, encodeMail(mail), 'replayed', outcome.mailId);
    return outcome;
  }

  #noteActivity(activity: Activity): void {
    const { device, lastSeenMs } = activity;
    const bytes = this.#tables.activity.getBinaryFast(keyOfDevice(device));
    // A device seen before exists, so each note costs one read and one put, while the index agrees.
    if (bytes === undefined && !this.#tables.devices.doesExist(keyOfDevice(device))) return;
    const before = bytes && decodeSeen(bytes);
    const record = encodeSeen(lastSeenMs, activity.address ?? before?.address);
    this.#tables.activity.putSync(keyOfDevice(device), record);
    changeSeen(this.#tables.seen, device, before?.lastSeenMs, lastSeenMs);
    if (activity.fetches.length > 0) this.#mailboxes.noteFetches(activity);
  }

  #sweep(what: 'due' | 'expired' | 'old'): boolean {
    const lifeMs = this.clock.lifeMs();
    const trustedMs = this.clock.trustedMs();
    this.clock.store();
    if (what === 'old') return this.#sweepOld(lifeMs, trustedMs);
    return this.#sweepDue(lifeMs, trustedMs, what === 'due');
  }

  /** Expires mail first, which makes space for delivery. */
  #sweepDue(lifeMs: number, trustedMs: number, delivers: boolean): boolean {
    const expired = this.#mailboxes.expire(lifeMs, sweepMailsMax);
    this.#effects.changed.push(...expired);
    const delivered = delivers ? this.#mailboxes.deliver(lifeMs, sweepMailsMax) : [];
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

  /** Applies a trim step. Nothing else writes these batches, which the log's end passed long ago. */
  #trim({ changes, state }: TrimStep): undefined {
    for (const { key, value } of changes) {
      if (value === undefined) this.#tables.log.removeSync(key);
      else this.#tables.log.putSync(key, value);
    }
    if (state !== undefined) storeTrimState(this.#tables.times, state);
  }

  #index(step: IndexStep): undefined {
    for (const { key, value } of step) {
      if (value === undefined) this.#tables.logIndex.removeSync(key);
      else this.#tables.logIndex.putSync(key, value);
    }
  }
}
