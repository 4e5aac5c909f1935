import { sleep } from '../../../core/async.ts';
import { isUnavailable } from '../../../core/errors.ts';
import { type DeviceKey, deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import { generateUuid } from '../../../core/uuid.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { EnqueueOutcome } from '../../../domain/mail/mail.ts';
import type { Shard } from '../../../domain/shard.ts';
import { pack } from '../../../storage/lmdb/environment/codec.ts';
import type { ActionConfig } from '../config.ts';
import type { ActionJournal } from '../tables.ts';
import type { RefusedMail } from './dead-letters.ts';
import { decodeOutboxEntry, identityOf, mailBytesOf, type OutboxEntry, type OutgoingMail } from './parcel.ts';

/** Of the queue of one shard: what mail of actions may take of it, so that devices always find it open. */
const share = 4;

/** Bounds the mails that are on their way to the shards at once; the others wait their turn here. */
export class InFlightLimit {
  readonly #config: ActionConfig;
  readonly #waiting: { bytes: number; enter(): void }[] = [];
  #mails = 0;
  #bytes = 0;

  constructor(config: ActionConfig) {
    this.#config = config;
  }

  async pass<T>(bytes: number, act: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#hasRoom(bytes)) {
      await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }));
    } else this.#take(bytes);
    try {
      return await act();
    } finally {
      this.#mails -= 1;
      this.#bytes -= bytes;
      this.#admit();
    }
  }

  /** A single one always has, or it would wait for ever. */
  #hasRoom(bytes: number): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#config;
    if (this.#mails === 0) return true;
    return this.#mails < shardQueueMax / share && this.#bytes + bytes <= shardQueueBytesMax / share;
  }

  #take(bytes: number): void {
    this.#mails += 1;
    this.#bytes += bytes;
  }

  #admit(): void {
    let admitted = 0;
    for (const { bytes, enter } of this.#waiting) {
      if (!this.#hasRoom(bytes)) break;
      this.#take(bytes);
      enter();
      admitted += 1;
    }
    this.#waiting.splice(0, admitted);
  }
}

export interface OutboxOptions {
  config: ActionConfig;
  journal: ActionJournal;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  /** Inside the write transaction that takes the parcel out: what a mailbox did not take. */
  onRefused(parcel: OutboxEntry, refused: readonly RefusedMail[]): void;
  /** Once that is on disk. */
  onParked(parcel: OutboxEntry): void;
  log: Log;
}

const retryMsMin = 100;
const retryMsMax = 5_000;
/** Parcels on their way at once, and bytes of their mails; runs wait while there are so many. */
const parcelsMax = 1_000;
const parcelBytesMax = 64 * 1024 * 1024;
/** A mail that its shard fails at, though it is not full: a damaged mailbox, say. The others are not to wait for it. */
const failuresMax = 5;

/**
 * From the commit of a run to the mailboxes. A parcel stays here until every mail of it is stored or refused,
 * and is delivered again after a crash: each mail has an identity of its record, action and ordinal, which its
 * shard keeps with it in one transaction, so that none arrives twice.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #gate: InFlightLimit;
  readonly #parcels = new Map<string, OutboxEntry>();
  /** By action, how many of them. */
  readonly #counts = new Map<string, number>();
  #bytes = 0;
  readonly #underway = new Map<Promise<void>, Buffer>();
  #delivered = false;
  #stopping = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#gate = new InFlightLimit(options.config);
  }

  get isFull(): boolean {
    return this.#parcels.size >= parcelsMax || this.#bytes >= parcelBytesMax;
  }

  /** How many of that action are on their way. */
  count(action: Buffer): number {
    return this.#counts.get(action.toString('hex')) ?? 0;
  }

  /** What a crash has left here, delivered before anything else runs: so the order of a device's mails holds. */
  async recover(): Promise<void> {
    const { journal, log } = this.#options;
    journal.refresh();
    const left: { key: Buffer; parcel: OutboxEntry }[] = [];
    for (const { key, value } of journal.tables.outbox.getRange({})) {
      try {
        left.push({ key, parcel: decodeOutboxEntry(value) });
      } catch (error) {
        log.error(
          { err: error, key: key.toString('hex') },
          'actions: a damaged parcel of mails is passed over',
        );
      }
    }
    for (const { key, parcel } of left) this.#note(key, parcel);
    await inOrder(
      left,
      ({ parcel: { action, record } }) => `${action.toString('hex')}${record.device}`,
      ({ key, parcel }) => this.deliver(key, parcel),
    );
  }

  /** Inside a write transaction. Answers the key to deliver it by, once that is on disk. */
  put(parcel: OutboxEntry): Buffer {
    const key = generateUuid();
    this.#options.journal.tables.outbox.putSync(key, pack(parcel));
    return key;
  }

  /** Settles when every mail is where it belongs, or when the server stops. */
  deliver(key: Buffer, parcel: OutboxEntry): Promise<void> {
    // Not before its commit, which may fail; and before the first of its mails is sent, for `forget`.
    this.#note(key, parcel);
    const delivery = this.#deliver(key, parcel).finally(() => this.#underway.delete(delivery));
    this.#underway.set(delivery, parcel.action);
    return delivery;
  }

  /** Settles when nothing of that action is on its way. */
  async settled(action: Buffer): Promise<void> {
    const own = [...this.#underway].filter(([, sender]) => sender.equals(action));
    await Promise.allSettled(own.map(([delivery]) => delivery));
  }

  /**
   * Has the shards forget the identities of mails whose parcels are gone. What is sent to a shard arrives in
   * order: a mail that is on its way now keeps its identity, since its parcel is among those that are looked at,
   * anew for each step. `mayGoOn` is asked before each step too.
   */
  async forget(mayGoOn: () => boolean): Promise<void> {
    if (!this.#delivered) return;
    this.#delivered = false;
    for (const shard of this.#options.shards.all) {
      let removed: number;
      do {
        if (this.#stopping || !mayGoOn()) {
          this.#delivered = true;
          return;
        }
        removed = await shard.pruneDedupeKeys(this.#oldestRecord());
      } while (removed > 0);
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.allSettled(this.#underway.keys());
  }

  #oldestRecord(): Buffer | undefined {
    let oldest: Buffer | undefined;
    for (const { record } of this.#parcels.values()) {
      if (oldest === undefined || record.id.compare(oldest) < 0) oldest = record.id;
    }
    return oldest;
  }

  #note(key: Buffer, parcel: OutboxEntry): void {
    const name = key.toString('hex');
    if (this.#parcels.has(name)) return;
    this.#parcels.set(name, parcel);
    this.#bytes += mailBytesOf(parcel);
    this.#count(parcel, 1);
  }

  #count({ action }: OutboxEntry, change: number): void {
    const name = action.toString('hex');
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }

  async #deliver(key: Buffer, parcel: OutboxEntry): Promise<void> {
    const { journal, log, onRefused, onParked } = this.#options;
    const refused: RefusedMail[] = [];
    await inOrder(
      parcel.mails,
      ({ device }) => device,
      async (mail) => {
        const outcome = await this.#send(parcel, mail);
        if (outcome === undefined || outcome.result === 'queued') return;
        const { result } = outcome;
        // Nothing that an action sends is delayed or has a key.
        const isKnown = result === 'mailbox_full' || result === 'device_not_found';
        refused.push({ ...mail, reason: isKnown ? result : 'not_stored' });
      },
    );
    // Shards answer in any order; these are sent again, and shown, in that of the run.
    refused.sort((a, b) => a.ordinal - b.ordinal);
    for await (const _ of this.#tries()) {
      try {
        await journal.commit(() => {
          journal.tables.outbox.removeSync(key);
          if (refused.length > 0) onRefused(parcel, refused);
        });
        this.#parcels.delete(key.toString('hex'));
        this.#bytes -= mailBytesOf(parcel);
        this.#delivered = true;
        if (refused.length > 0) onParked(parcel);
        this.#count(parcel, -1);
        return;
      } catch (error) {
        logFailure(log, error, 'a parcel of mails was delivered, but this could not be noted yet');
      }
    }
  }

  /** Undefined when the server stops first. */
  async #send(
    parcel: OutboxEntry,
    mail: OutgoingMail,
  ): Promise<EnqueueOutcome | { result: 'not_stored' } | undefined> {
    const { config, fleets, shards } = this.#options;
    const { device, name, payload, ordinal } = mail;
    let failures = 0;
    for await (const _ of this.#tries()) {
      const fleet = fleets.get(fleetIdOf(device));
      try {
        return await this.#gate.pass(payload.length, async () => {
          if (this.#stopping) return undefined;
          return shards.of(device).enqueue({
            device,
            name,
            // Memory of its own: a view would cross threads with all that is around it.
            payload: new Uint8Array(payload),
            ttlSeconds: mail.ttlSeconds ?? fleet?.mailTtlSeconds ?? config.mailTtlSeconds,
            mailboxMailsMax: fleet?.mailboxMailsMax ?? config.mailboxMailsMax,
            ...(fleet?.mailRequeuesMax !== undefined && { requeuesMax: fleet.mailRequeuesMax }),
            dedupeKey: identityOf(parcel, ordinal),
          });
        });
      } catch (error) {
        if (!isUnavailable(error)) {
          failures += 1;
          if (failures === failuresMax) {
            this.#options.log.error({ err: error, device: deviceIdOf(device) }, 'mail of an action fails');
            return { result: 'not_stored' };
          }
        }
      }
    }
    return undefined;
  }

  /** Each later than the one before, until the server stops. */
  async *#tries(): AsyncGenerator<void> {
    for (let waitMs = retryMsMin; !this.#stopping; waitMs = Math.min(2 * waitMs, retryMsMax)) {
      yield;
      await sleep(waitMs);
    }
  }
}

/** Items of one key one after another, in their order; keys side by side. */
async function inOrder<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  each: (item: T) => Promise<void>,
): Promise<void> {
  const last = new Map<string, Promise<void>>();
  for (const item of items) {
    const key = keyOf(item);
    const before = last.get(key);
    last.set(key, before === undefined ? each(item) : before.then(() => each(item)));
  }
  await Promise.all(last.values());
}
