import { type Answer, isFinal, serverErrorOf } from './answer.ts';
import { claimSecret } from './claim.ts';
import type { Connection } from './connection.ts';
import { mintIdempotencyKey } from './idempotency-key.ts';
import type { ServerLink } from './link.ts';
import { Notifier } from './notifier.ts';
import type { DeviceQueue, QueueEntry } from './queue/queue.ts';

/** The server remembers a key for 24 h (D18); an older one could be stored twice, so it is renewed before and counted. */
const keySecondsMax = 82_800;
const lateMs = 1_000;

/** When a device sends without being told to. */
export interface SenderOptions {
  /** A heartbeat after so long without any other request; 0: none. */
  heartbeatSeconds: number;
  /** The first connection waits up to this long, at random. */
  startDelaySeconds: number;
  /** For a device without a secret. */
  claim: string | undefined;
}

/** Sends what waits in the queue, one after another, and heartbeats in between. */
export class QueueSender {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  readonly #options: SenderOptions;
  readonly #work = new Notifier();
  /** Notified when the queue is empty. */
  readonly #emptied = new Notifier();
  readonly #connection: Connection;
  #isHeartbeatAsked = false;
  #sentAtMs = Number.NEGATIVE_INFINITY;

  constructor(link: ServerLink, queue: DeviceQueue, options: SenderOptions) {
    this.#link = link;
    this.#queue = queue;
    this.#options = options;
    this.#connection = link.connect();
  }

  /** Something is in the queue. */
  wake(): void {
    this.#work.notify();
  }

  heartbeat(): void {
    this.#isHeartbeatAsked = true;
    this.#work.notify();
  }

  /** Waits until the queue is empty; whether it is. */
  async flush(seconds: number): Promise<boolean> {
    const untilMs = performance.now() + seconds * 1_000;
    while (this.#queue.entries > 0 && performance.now() < untilMs && !this.#link.isClosing) {
      await this.#emptied.wait((untilMs - performance.now()) / 1_000, this.#link.closing);
    }
    return this.#queue.entries === 0;
  }

  /** Works until the device is closed. ready: called once the device has its secret, or is closed. */
  async run(ready: () => void): Promise<void> {
    const { claim, startDelaySeconds } = this.#options;
    await this.#link.pause(Math.random() * startDelaySeconds);
    let attempt = 0;
    while (!this.#link.isClosing) {
      try {
        if (this.#link.secret === undefined && claim !== undefined) {
          await claimSecret(this.#link, this.#queue, this.#connection, claim);
          continue;
        }
        ready();
        const answer = await this.#sendNext();
        if (answer === undefined || answer.status === 201) {
          attempt = 0;
          continue;
        }
        await this.#link.waitAfter(answer, attempt);
      } catch (error) {
        // No answer, or a disk that is full. It must go on.
        await this.#link.waitAfter(error, attempt);
      }
      attempt += 1;
    }
    ready();
  }

  close(): void {
    this.#connection.close();
  }

  /** Sends an entry or a heartbeat, or waits for one: then there is no answer. */
  async #sendNext(): Promise<Answer | undefined> {
    const entry = this.#queue.head();
    if (entry === undefined) {
      this.#emptied.notify();
      if (!this.#isHeartbeatDue()) {
        await this.#work.wait(this.#secondsToHeartbeat(), this.#link.closing);
        return undefined;
      }
    }
    const answer = await (entry === undefined ? this.#beat() : this.#send(entry));
    if (answer.status === 201) this.#sentAtMs = performance.now();
    return answer;
  }

  #secondsToHeartbeat(): number {
    const { heartbeatSeconds } = this.#options;
    if (heartbeatSeconds <= 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#sentAtMs / 1_000 + heartbeatSeconds - performance.now() / 1_000);
  }

  #isHeartbeatDue(): boolean {
    return this.#isHeartbeatAsked || this.#secondsToHeartbeat() === 0;
  }

  async #beat(): Promise<Answer> {
    this.#isHeartbeatAsked = false;
    const answer = await this.#link.ask(this.#connection, 'POST', '/v1/heartbeat');
    if (answer.headers['x-messages-available'] === 'true') this.#link.mailHinted.notify();
    return answer;
  }

  /** An entry that was stored, or refused for good, leaves the queue. */
  async #send(waiting: QueueEntry): Promise<Answer> {
    const entry = await this.#prepare(waiting);
    const headers = sendHeaders(entry.key ?? '', entry.atMs);
    const path = `/v1/${entry.kind}/${entry.name}`;
    const answer = await this.#link.ask(this.#connection, 'POST', path, headers, Buffer.from(entry.body));
    if (answer.status === 201) {
      this.#queue.remove(entry);
      return answer;
    }
    const { code, msg } = serverErrorOf(answer);
    // The clock was wrong. Nothing was stored, so another key is safe.
    if (code === 'invalid_idempotency_key') await this.#queue.update({ ...entry, key: null, keyMs: null });
    else if (code === 'invalid_recorded_at') await this.#queue.update({ ...entry, atMs: null });
    else if (isFinal(answer)) {
      this.#queue.increment('refused');
      this.#queue.remove(entry);
      this.#link.say(`The server refused ${entry.kind}/${entry.name}: ${msg || code || answer.status}`);
      return { ...answer, status: 201 };
    }
    return answer;
  }

  /** Mints the key at the first attempt, and stores it before. */
  async #prepare(entry: QueueEntry): Promise<QueueEntry> {
    const nowMs = this.#link.nowMs();
    const isFresh = entry.keyMs !== null && nowMs - entry.keyMs <= keySecondsMax * 1_000;
    if (entry.key !== null && isFresh) return entry;
    if (entry.key !== null) {
      this.#queue.increment('doubtful');
      this.#link.say('An answer was missing for a day: an entry is sent again, and may be stored twice.');
    }
    // Decided once, for the time is part of what the key stands for.
    const isLate = entry.atMs !== null && Math.abs(nowMs - entry.atMs) > lateMs;
    const atMs = isLate || entry.key !== null ? entry.atMs : null;
    const tried = { ...entry, atMs, key: mintIdempotencyKey(nowMs), keyMs: nowMs };
    await this.#queue.update(tried);
    return tried;
  }
}

/** Headers of a datapoint or a message. */
export function sendHeaders(key: string, atMs: number | null): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'Idempotency-Key': key,
    ...(atMs !== null && { 'Recorded-At': new Date(atMs).toISOString() }),
  };
}
