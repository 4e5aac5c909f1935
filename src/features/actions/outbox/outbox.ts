import { Condition, EventLoopBudget, sleep } from '../../../core/async.ts';
import { isUnavailable, unavailable } from '../../../core/errors.ts';
import { FairShare } from '../../../core/fair-share.ts';
import { type DeviceKey, deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { EnqueueOutcome } from '../../../domain/mail/mail.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { RunMail } from '../action-work.ts';
import type { ActionConfig } from '../config.ts';
import type { RunJournal, Sending } from '../runs/run-journal.ts';
import type { RefusedMail } from './dead-letters.ts';
import { InFlightLimit } from './in-flight-limit.ts';
import {
  dedupeKeyOf,
  mailBytesOf,
  type OutboxEntry,
  type OutgoingMail,
  runMailsKept,
} from './outbox-entry.ts';

export interface OutboxOptions {
  config: ActionConfig;
  runJournal: RunJournal;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  log: Log;
}

const retryMsMin = 100;
const retryMsMax = 5_000;
/** Bounds the entries in flight and the bytes of their mails; while a fleet has its share of either, no run of it starts. */
const entriesMax = 1_000;
const entryBytesMax = 64 * 1024 * 1024;
/** Longest wait of a replay for its fleet's share. */
const roomMsMax = 10_000;
/**
 * Attempts at a mail that fails though its shard is available, for a damaged mailbox say, before it is given up so that
 * the others need not wait.
 */
const failuresMax = 5;

/**
 * Delivers mails from the commit of a run to the mailboxes. An entry stays until every mail of it is stored or refused,
 * and is delivered again after a crash: each mail has a dedupe key made of record, action and ordinal, which its shard
 * stores in the same transaction, so that none arrives twice.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #inFlight: InFlightLimit;
  /** A shard answers many mails at once, and each lets the next one in. */
  readonly #turns = new EventLoopBudget();
  readonly #entries = new Map<string, OutboxEntry>();
  /** Number of entries, by action. */
  readonly #counts = new Map<string, number>();
  readonly #shares = { entries: new FairShare(entriesMax), bytes: new FairShare(entryBytesMax) };
  /** Woken when an entry is settled. */
  readonly #settled = new Condition();
  readonly #underway = new Map<Promise<void>, Buffer>();
  #delivered = false;
  readonly #stopping = new AbortController();

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#inFlight = new InFlightLimit(options.config);
  }

  /** True if the fleet may have no further entry in flight. */
  isFull(fleetId: string): boolean {
    const { entries, bytes } = this.#shares;
    return !entries.hasRoomFor(fleetId) || !bytes.hasRoomFor(fleetId);
  }

  /** Settles once the fleet may have another entry in flight. @throws ApiError unavailable if that takes long. */
  async room(fleetId: string): Promise<void> {
    const untilMs = performance.now() + roomMsMax;
    while (this.isFull(fleetId)) {
      const msMax = untilMs - performance.now();
      if (this.#isStopping || msMax <= 0) {
        throw unavailable('Mails of actions of this fleet still wait for their mailboxes. Retry later.', 5);
      }
      await this.#settled.wait(this.#stopping.signal, { msMax });
    }
  }

  /** Number of entries of the action in flight. */
  count(action: Buffer): number {
    return this.#counts.get(action.toString('hex')) ?? 0;
  }

  /** Redelivers what a crash left behind, before anything else runs, to keep per-device order. */
  async recover(): Promise<void> {
    const left = this.#options.runJournal.unsettled();
    for (const sending of left) this.#note(sending);
    await inOrder(
      left,
      ({ entry: { action, record } }) => `${action.toString('hex')}${record.device}`,
      (sending) => this.deliver(sending),
    );
  }

  /** Settles when every mail is stored or refused, or when the server stops. */
  deliver(sending: Sending): Promise<void> {
    // Only after its commit, which may fail, and before the first of its mails is sent, for the sake of
    // `pruneDedupeKeys`.
    this.#note(sending);
    const delivery = this.#deliver(sending).finally(() => this.#underway.delete(delivery));
    this.#underway.set(delivery, sending.entry.action);
    return delivery;
  }

  /** Settles when nothing of the action is in flight. */
  async settled(action: Buffer): Promise<void> {
    const own = [...this.#underway].filter(([, sender]) => sender.equals(action));
    await Promise.allSettled(own.map(([delivery]) => delivery));
  }

  /**
   * Has the shards prune the dedupe keys of mails whose entries are gone. What is sent to a shard arrives in order, and
   * each step computes the oldest entry anew: a mail in flight now keeps its key. `mayGoOn` is asked before each step
   * too.
   */
  async pruneDedupeKeys(mayGoOn: () => boolean): Promise<void> {
    if (!this.#delivered) return;
    this.#delivered = false;
    for (const shard of this.#options.shards.all) {
      let removed: number;
      do {
        if (this.#isStopping || !mayGoOn()) {
          this.#delivered = true;
          return;
        }
        removed = await shard.dedupe.prune(this.#oldestRecord());
      } while (removed > 0);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#underway.keys());
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #oldestRecord(): Buffer | undefined {
    let oldest: Buffer | undefined;
    for (const { record } of this.#entries.values()) {
      if (oldest === undefined || record.id.compare(oldest) < 0) oldest = record.id;
    }
    return oldest;
  }

  #note({ key, entry }: Sending): void {
    const name = key.toString('hex');
    if (this.#entries.has(name)) return;
    this.#entries.set(name, entry);
    const fleetId = fleetIdOf(entry.record.device);
    this.#shares.entries.hold(fleetId);
    this.#shares.bytes.hold(fleetId, mailBytesOf(entry));
    this.#count(entry, 1);
  }

  #forget({ key, entry }: Sending): void {
    const fleetId = fleetIdOf(entry.record.device);
    this.#entries.delete(key.toString('hex'));
    this.#shares.entries.release(fleetId);
    this.#shares.bytes.release(fleetId, mailBytesOf(entry));
    this.#delivered = true;
    this.#count(entry, -1);
    this.#settled.wakeAll();
  }

  #count({ action }: OutboxEntry, change: number): void {
    const name = action.toString('hex');
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }

  async #deliver(sending: Sending): Promise<void> {
    const { log, runJournal } = this.#options;
    const { entry } = sending;
    const refused: RefusedMail[] = [];
    const answered = new Map<number, RunMail>();
    await inOrder(
      entry.mails,
      ({ device }) => device,
      async (mail) => {
        const outcome = await this.#send(entry, mail);
        if (outcome === undefined) return;
        const runMail = runMailOf(mail, outcome);
        if (runMail.refused !== undefined) refused.push({ ...mail, reason: runMail.refused });
        if (mail.ordinal < runMailsKept) answered.set(mail.ordinal, runMail);
      },
    );
    // Shards answer in any order; these are replayed, and shown, in that of the run.
    refused.sort((a, b) => a.ordinal - b.ordinal);
    for await (const _ of this.#attempts()) {
      try {
        await runJournal.settle(sending, answered, refused);
        this.#forget(sending);
        return;
      } catch (error) {
        logFailure(
          log,
          error,
          'mails of a run delivered, but the outbox entry could not be removed; retrying',
        );
      }
    }
  }

  /** Returns undefined when the server stops first. */
  async #send(entry: OutboxEntry, mail: OutgoingMail): Promise<Sent | undefined> {
    const { config, fleets, shards } = this.#options;
    const { device, name, payload, ordinal } = mail;
    let failures = 0;
    for await (const _ of this.#attempts()) {
      const fleet = fleets.get(fleetIdOf(device));
      try {
        return await this.#inFlight.pass(fleetIdOf(device), payload.length, async () => {
          await this.#turns.take(fleetIdOf(device));
          if (this.#isStopping) return undefined;
          return shards.of(device).mail.enqueue({
            device,
            name,
            // A copy: a view would cross threads with the whole buffer around it.
            payload: new Uint8Array(payload),
            ttlSeconds: mail.ttlSeconds ?? fleet?.mailTtlSeconds ?? config.settings.current.mailTtlSeconds,
            mailboxMailsMax: fleet?.mailboxMailsMax ?? config.settings.current.mailboxMailsMax,
            ...(fleet?.mailRequeuesMax !== undefined && { requeuesMax: fleet.mailRequeuesMax }),
            ...(mail.replaceKey !== undefined && { replaceKey: mail.replaceKey }),
            dedupeKey: dedupeKeyOf(entry, ordinal),
          });
        });
      } catch (error) {
        if (!isUnavailable(error)) {
          failures += 1;
          if (failures === failuresMax) {
            this.#options.log.error(
              { err: error, device: deviceIdOf(device) },
              'mail of an action failed; giving it up',
            );
            return { result: 'not_stored' };
          }
        }
      }
    }
    return undefined;
  }

  /** Yields attempts with growing delays until the server stops. */
  async *#attempts(): AsyncGenerator<void> {
    for (let waitMs = retryMsMin; !this.#isStopping; waitMs = Math.min(2 * waitMs, retryMsMax)) {
      yield;
      await sleep(waitMs, this.#stopping.signal);
    }
  }
}

type Sent = EnqueueOutcome | { result: 'not_stored' };

/** A mail as its run keeps it: with its id, or with why no mailbox took it. */
function runMailOf({ device, name }: OutgoingMail, sent: Sent): RunMail {
  const mail = { device: deviceIdOf(device), name };
  const { result } = sent;
  if (result === 'queued') return { ...mail, mailId: formatUuid(sent.mailId) };
  if (result === 'mailbox_full' || result === 'fleet_mail_full' || result === 'device_not_found')
    return { ...mail, refused: result };
  // Other outcomes concern delayed mail and clients' keys, which actions do not use.
  return { ...mail, refused: 'not_stored' };
}

/** Runs items of one key in sequence, and keys in parallel. */
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
