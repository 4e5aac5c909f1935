import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Page } from '../page.ts';
import type { WriteSink } from '../write.ts';
import type { Broadcast, BroadcastMail, BroadcastOutcome, MarkedBroadcast } from './broadcast.ts';
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterWithPayload,
  LetterOrder,
  Receipt,
} from './ended-mail.ts';
import type {
  DelayedMail,
  Enqueue,
  EnqueueOutcome,
  Mail,
  MailboxFront,
  MailboxHead,
  MailFront,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from './mail.ts';

/** Bytes of payloads after which a page of mails ends, so that no read of one blocks a thread for long. */
export const mailPageBytesMax = 1_048_576;

/** The mailboxes of a shard's devices: read as the engine has them, written the same on every engine. */
export abstract class ShardMail {
  readonly #sink: WriteSink;

  constructor(sink: WriteSink) {
    this.#sink = sink;
  }

  abstract size(device: DeviceKey): Awaitable<number>;
  abstract head(device: DeviceKey): Awaitable<MailboxHead>;
  abstract front(device: DeviceKey, front: MailFront): Awaitable<MailboxFront>;
  /**
   * Lists in mailbox order, at least one mail and then up to `mailPageBytesMax`. A cursor is a whole number up to 2^48 - 2 as text: a position, whatever mail is there now.
   */
  abstract list(device: DeviceKey, after: string, limit: number): Awaitable<Page<Mail>>;
  /**
   * Lists in order of delivery, then of mail id, with the number of all. A cursor is 44 hexadecimal digits: the
   * delivery time, as the engine stores it, and the mail id.
   */
  abstract listDelayed(
    device: DeviceKey,
    after: string,
    limit: number,
  ): Awaitable<Page<DelayedMail> & { total: number }>;
  /** The payload of a mail while it is queued or delayed. */
  abstract payload(device: DeviceKey, mailId: Uint8Array): Awaitable<Buffer | undefined>;
  /** Undefined if the mail never existed, or its receipt is no longer retained. */
  abstract receipt(device: DeviceKey, mailId: Uint8Array): Awaitable<Receipt | undefined>;
  /** Bytes of the waiting mail of a fleet in this shard, as its limit counts them. */
  abstract bytesOfFleet(fleetId: string): Awaitable<number>;
  /** The mails of a broadcast by device, after the cursor, which is a device. */
  abstract ofBroadcast(broadcast: Uint8Array, after: string, limit: number): Awaitable<Page<BroadcastMail>>;

  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome> {
    return this.#sink.write('enqueue', enqueue, enqueue.payload.length);
  }

  settle(settle: Settle): Promise<SettleOutcome> {
    return this.#sink.write('settle', settle, settle.reply?.length);
  }

  /**
   * Settles, and reads the head behind it (D28). An engine whose reads are a round trip away reads it in the
   * transaction. Without a head that cannot be read: what is settled is settled.
   */
  async settleThenHead(settle: Settle): Promise<SettleOutcome> {
    const outcome = await this.settle(settle);
    if (outcome.result !== 'settled') return outcome;
    try {
      return { ...outcome, head: await this.head(settle.device) };
    } catch {
      return outcome;
    }
  }

  /** Withdraws a queued or delayed mail. */
  withdraw(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal> {
    return this.#sink.write('withdrawMail', { device, mailId });
  }

  /** Mail for some dozens of devices in one write, which blocks all others. */
  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome> {
    return this.#sink.write('broadcast', broadcast, broadcast.mail.payload.length);
  }
}

/** The dead letters of a shard's devices. */
export abstract class ShardDeadLetters {
  readonly #sink: WriteSink;

  constructor(sink: WriteSink) {
    this.#sink = sink;
  }

  /**
   * Lists in order of mail id, the oldest first unless said otherwise, after the cursor, which is the mail id and device of a letter in hexadecimal. Each call
   * scans a bounded number: a page may have fewer than `limit`, or none, and still have a next one.
   */
  abstract list(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
    order?: LetterOrder,
  ): Awaitable<Page<DeadLetter>>;
  abstract get(device: DeviceKey, mailId: Uint8Array): Awaitable<DeadLetterWithPayload | undefined>;

  /** Queues a dead letter as a new mail and removes it, in one transaction. */
  replay(replay: Replay): Promise<ReplayOutcome> {
    return this.#sink.write('replayMail', replay);
  }

  /** Returns false if there is no such letter. */
  drop(device: DeviceKey, mailId: Uint8Array): Promise<boolean> {
    return this.#sink.write('dropDeadLetter', { device, mailId });
  }
}

/** A shard's memory of senders that repeat themselves. */
export interface ShardDedupe {
  /**
   * Forgets the oldest dedupe keys: those whose UUIDv7 sorts before the 16 bytes, or any. One bounded write; returns
   * the number removed, 0 when done.
   */
  prune(before: Uint8Array | undefined): Promise<number>;
  /** Broadcasts of which it remembers who got the mail, in order of id, after one. */
  broadcasts(after: Uint8Array | undefined, limit: number): Awaitable<MarkedBroadcast[]>;
  /**
   * Forgets who got the mail of a broadcast. One bounded write; returns the number removed, less than
   * `sweepRecordsMax` when done.
   */
  forgetBroadcast(broadcast: Uint8Array): Promise<number>;
}
