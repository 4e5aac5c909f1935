import type { DeviceKey } from '../core/identity.ts';
import { formatUuid } from '../core/uuid.ts';
import { decodeSeen, encodeSeen } from './activity-record.ts';
import { ShardClock } from './clock.ts';
import { DeviceWrites } from './device-writes.ts';
import { IdempotencyKeys } from './idempotency.ts';
import { IngestLog, type LogBatch } from './ingest-log.ts';
import { keyOfDevice } from './keys.ts';
import { Mailboxes } from './mailbox.ts';
import { changeSeen } from './seen-index.ts';
import { SentMail } from './sent-mail.ts';
import type { Activity, Announcement, Enqueue, EnqueueOutcome, IngestOutcome } from './shard.ts';
import type { Tables } from './tables.ts';
import { type Answer, type Append, type SweepOutcome, sweepRecordsMax, type Write } from './write.ts';

/** What follows a commit, and only a commit: mail to announce, streams to end. */
export interface Effects {
  /** Devices whose credentials or mailbox are other than before. */
  changed: DeviceKey[];
  announcements: { device: DeviceKey; announcement: Announcement }[];
  endedStreams: DeviceKey[];
  /** Of devices whose old secret has ended. */
  recheckedStreams: DeviceKey[];
}

function noEffects(): Effects {
  return { changed: [], announcements: [], endedStreams: [], recheckedStreams: [] };
}

export interface StateOptions {
  idempotencyWindowSeconds: number;
  idempotencySkewSeconds: number;
  clockJumpGraceSeconds: number;
  logRetentionSeconds: number;
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
  readonly #sent: SentMail;
  readonly #log: IngestLog;
  readonly #keys: IdempotencyKeys;
  readonly #logRetentionMs: number;
  #effects: Effects = noEffects();

  constructor(tables: Tables, options: StateOptions) {
    this.#tables = tables;
    this.clock = new ShardClock(tables.times, options.clockJumpGraceSeconds);
    this.#devices = new DeviceWrites(tables, () => this.#effects);
    this.#mailboxes = new Mailboxes(tables);
    this.#sent = new SentMail(tables.sent);
    this.#log = new IngestLog(tables.log, () => this.clock.lifeMs());
    this.#keys = new IdempotencyKeys(tables.idempotency, tables.times, options);
    this.#logRetentionMs = options.logRetentionSeconds * 1_000;
  }

  apply(write: Write): Answer {
    switch (write.type) {
      case 'ingest':
        return this.#ingest(write.given);
      case 'settle':
        this.#effects.changed.push(write.given.device);
        return this.#mailboxes.settle(write.given);
      case 'enqueue':
        return this.#enqueue(write.given);
      case 'forgetSent':
        return this.#sent.forget(write.given, sweepRecordsMax);
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
        return this.#sweep();
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
    this.#effects = noEffects();
  }

  /** Expired mail that stays where it is, since a record of it is damaged. */
  get unexpirableMails(): number {
    return this.#mailboxes.unexpirable;
  }

  /** After a commit: what it brought about, handed out once. */
  takeEffects(): Effects {
    const effects = this.#effects;
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

  #enqueue(enqueue: Enqueue): EnqueueOutcome {
    const { device, name } = enqueue;
    const outcome = this.#mailboxes.enqueue(enqueue, this.clock.lifeMs());
    if (outcome.result !== 'queued' || outcome.repeated) return outcome;
    const { mailId, mailboxSize } = outcome;
    this.#effects.changed.push(device);
    const announcement = { mailId: formatUuid(mailId), name, mailboxSize };
    this.#effects.announcements.push({ device, announcement });
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

  #sweep(): SweepOutcome {
    const lifeMs = this.clock.lifeMs();
    const expired = this.#mailboxes.expire(lifeMs, sweepRecordsMax);
    this.#effects.changed.push(...expired);
    const trustedMs = this.clock.trustedMs();
    this.clock.store();
    return {
      mails: expired.length,
      keys: this.#keys.expire(trustedMs, sweepRecordsMax),
      secrets: this.#devices.retireSecrets(trustedMs, sweepRecordsMax),
      logBatches: this.#log.trim(lifeMs - this.#logRetentionMs, sweepRecordsMax),
    };
  }
}
