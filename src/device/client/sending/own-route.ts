import { type Answer, isFinal, serverErrorOf } from '../answer.ts';
import type { Connection } from '../connection.ts';
import type { ServerLink } from '../link.ts';
import type { DeviceQueue, QueueEntry } from '../queue/queue.ts';
import { mintIdempotencyKey } from './idempotency-key.ts';
import { recordedTimeMs } from './recorded-time.ts';

/** The server remembers a key for 24 h (D18); an older one could be stored twice, so it is renewed before and counted. */
const keySecondsMax = 82_800;

/**
 * Sends entries one by one, each by the route of its kind and with a key of its own: what is too large for a sync, what
 * was sent so before, and all where the server knows no sync.
 */
export class OwnRoute {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  /** The last attempt, which a disk that is full has not taken. */
  #tried: QueueEntry | undefined;

  constructor(link: ServerLink, queue: DeviceQueue) {
    this.#link = link;
    this.#queue = queue;
  }

  /** An entry that was stored, or refused for good, leaves the queue. */
  async send(connection: Connection, waiting: QueueEntry): Promise<Answer> {
    const entry = await this.#prepare(waiting);
    const headers = sendHeaders(entry.key ?? '', entry.atMs);
    const path = `/v1/${entry.kind}/${entry.name}`;
    const answer = await this.#link.ask(connection, 'POST', path, headers, Buffer.from(entry.body));
    if (answer.status === 201) {
      this.#queue.done(entry.number);
      return answer;
    }
    const { code, msg } = serverErrorOf(answer);
    // The clock was wrong. Nothing was stored, so another key is safe.
    if (code === 'invalid_idempotency_key') await this.#note({ ...entry, key: null, keyMs: null });
    else if (code === 'invalid_recorded_at') await this.#note({ ...entry, atMs: null });
    else if (isFinal(answer)) {
      this.#queue.increment('refused');
      this.#queue.done(entry.number);
      this.#link.say(`The server refused ${entry.kind}/${entry.name}: ${msg || code || answer.status}`);
      return { ...answer, status: 201 };
    }
    return answer;
  }

  /** Mints the key at the first attempt, and stores it before. */
  async #prepare(waiting: QueueEntry): Promise<QueueEntry> {
    const entry = this.#tried?.number === waiting.number ? this.#tried : waiting;
    const nowMs = this.#link.nowMs();
    const isFresh = entry.keyMs !== null && nowMs - entry.keyMs <= keySecondsMax * 1_000;
    if (entry.key !== null && isFresh) return entry;
    if (entry.key !== null) {
      this.#queue.increment('doubtful');
      this.#link.say('An answer was missing for a day: an entry is sent again, and may be stored twice.');
    }
    // Decided once, for the time is part of what the key stands for.
    const atMs = entry.key === null ? recordedTimeMs(entry, this.#link) : entry.atMs;
    const tried = { ...entry, atMs, isClockUnheard: false, key: mintIdempotencyKey(nowMs), keyMs: nowMs };
    await this.#note(tried);
    return tried;
  }

  async #note(tried: QueueEntry): Promise<void> {
    this.#tried = tried;
    // A disk that is full must not hold up what would empty it.
    await this.#queue.update(tried).catch((error: Error) => this.#link.say(error.message));
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
