import { readFileSync } from 'node:fs';
import { payloadBytesMax } from './answer.ts';
import { parseServerUrl } from './connection.ts';
import { ServerLink } from './link.ts';
import { MailWatch } from './mail-watch.ts';
import { type MailHandler, MailWorker } from './mail-worker.ts';
import { defaultPace, type Pace } from './pace.ts';
import { DeviceQueue } from './queue/queue.ts';
import { SyncLoop } from './sending/sync-loop.ts';
import { createTrust } from './trust.ts';

const queueBytesMaxDefault = 16 * 1024 * 1024;
const queueEntriesMaxDefault = 100_000;

/** Who a device is, whom it trusts, and what it keeps. */
export interface ClientOptions {
  /** https://HOST:PORT of the server. */
  url: string;
  /** Fleet id: 8 letters or digits. */
  fleet: string;
  /** Device id: 10 letters or digits. */
  id: string;
  secret?: string;
  /** A claim token instead of the secret: the device chooses a secret and keeps it in `queue`. */
  claim?: string;
  /** File of the authority to trust, PEM; without it and `pins` those that Node knows. */
  ca?: string;
  /** Base64 of the SHA-256 of public keys of the server: two, so that one can be rolled over. */
  pins?: readonly string[];
  /** File for what waits; without one it waits in memory, and is lost with the process. */
  queue?: string;
  /** Beyond these the oldest datapoints go, then the oldest messages. */
  queueBytesMax?: number;
  queueEntriesMax?: number;
  /** A heartbeat after so long without any other request; 0: none. Default 60. */
  heartbeatSeconds?: number;
  /**
   * The first connection waits up to this long at random, so that a hall whose power comes back does not connect at one
   * moment. Default 10.
   */
  startDelaySeconds?: number;
  /**
   * Asks for mail with what it sends, and every 30 s to 5 min, instead of holding an event stream open: one connection
   * in all. For devices that `sleep`.
   */
  isPolling?: boolean;
  /** How often it tries what has failed. */
  pace?: Partial<Pace>;
  /** Called whenever something happened that an operator would want to know. */
  onStatus?: (status: ClientStatus) => void;
}

/** How a device is doing. */
export interface ClientStatus {
  connected: boolean;
  /** Why it is not connected, or what happened last: a sentence. */
  reason: string;
  queued: number;
  queuedBytes: number;
  /** Entries thrown away because the queue was full, since it was made. */
  dropped: number;
  /** Entries that the server refused for good, since the queue was made. */
  refused: number;
  /** Entries that may be stored twice: their answer was missing for a day. */
  doubtful: number;
  /** Mails that wait, as last heard. */
  mailbox: number | null;
}

/** A device. It works in the background until `close`. */
export class DeviceClient {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  readonly #loop: SyncLoop;
  readonly #isPolling: boolean;
  readonly #onStatus: ClientOptions['onStatus'];
  readonly #ready: Promise<void>;
  readonly #work: Promise<void>[] = [];
  #watch: MailWatch | undefined;

  constructor(options: ClientOptions) {
    const { fleet, id, secret, claim, ca, queue, onStatus } = options;
    if (secret === undefined && claim === undefined)
      throw new Error('A device needs its secret or a claim token.');
    if (secret === undefined && queue === undefined) {
      throw new Error('A device that claims its secret needs a queue file to keep it in.');
    }
    const trust = createTrust(ca === undefined ? undefined : readFileSync(ca, 'utf8'), options.pins ?? []);
    const address = { ...parseServerUrl(options.url), trust };
    this.#link = new ServerLink(address, { fleet, id }, { ...defaultPace, ...options.pace }, () =>
      this.#tell(),
    );
    this.#link.secret = secret;
    this.#onStatus = onStatus;
    this.#queue = new DeviceQueue(queue, {
      bytesMax: options.queueBytesMax ?? queueBytesMaxDefault,
      entriesMax: options.queueEntriesMax ?? queueEntriesMaxDefault,
    });
    const { heartbeatSeconds = 60, startDelaySeconds = 10, isPolling = false } = options;
    this.#isPolling = isPolling;
    const loopOptions = { heartbeatSeconds, startDelaySeconds, claim, isPolling };
    this.#loop = new SyncLoop(this.#link, this.#queue, loopOptions);
    this.#ready = new Promise((resolve) => this.#work.push(this.#loop.run(resolve)));
  }

  /** Queues a datapoint of the schema `name`; resolves when it is on disk. at: when it was measured; now, if absent. */
  async datapoint(name: string, payload: object, at?: Date): Promise<void> {
    if (Object.keys(payload).length === 0) throw new Error('A datapoint needs at least one member.');
    await this.#add('datapoint', name, payload, at);
  }

  /** Queues a message of the schema `name`; resolves when it is on disk. */
  async message(name: string, payload: object = {}, at?: Date): Promise<void> {
    await this.#add('msg', name, payload, at);
  }

  /** Sends a heartbeat now, or as soon as the server is reached. */
  heartbeat(): void {
    this.#loop.heartbeat();
  }

  /** Begins to take mail, one at a time. */
  onMail(handler: MailHandler): void {
    if (this.#loop.mail !== undefined) {
      this.#loop.mail.handler = handler;
      return;
    }
    const worker = new MailWorker(this.#link, this.#queue, () => this.#loop.wake(), handler);
    this.#loop.mail = worker;
    if (this.#isPolling) {
      this.#loop.wake();
      return;
    }
    const watch = new MailWatch(this.#link, this.#loop.connection);
    this.#watch = watch;
    this.#work.push(this.#ready.then(() => watch.run(() => worker.workThrough())));
  }

  get status(): ClientStatus {
    const queue = this.#queue;
    return {
      connected: this.#link.isConnected,
      reason: this.#link.reason,
      queued: queue.entries,
      queuedBytes: queue.bytes,
      dropped: queue.count('dropped'),
      refused: queue.count('refused'),
      doubtful: queue.count('doubtful'),
      mailbox: this.#link.mailbox,
    };
  }

  /** Waits until the queue is empty; whether it is. */
  flush(seconds = Number.POSITIVE_INFINITY): Promise<boolean> {
    return this.#loop.flush(seconds);
  }

  /**
   * Sends what waits, and takes mail until the mailbox is empty, or all in it was put off; whether that is done. Then the
   * connection is closed, and nothing happens until something is queued, a heartbeat is asked for, or it sleeps again.
   * Needs `isPolling`.
   */
  async sleep(seconds = Number.POSITIVE_INFINITY): Promise<boolean> {
    if (!this.#isPolling) throw new Error('A device that sleeps needs the option isPolling.');
    return this.#loop.sleep(seconds);
  }

  /** Ends; what waits stays in the queue file. Gives a request that is under way so many seconds to end. */
  async close(seconds = 5): Promise<void> {
    this.#link.close();
    this.#watch?.close();
    const cut = setTimeout(() => this.#loop.close(), seconds * 1_000);
    await Promise.allSettled(this.#work);
    clearTimeout(cut);
    this.#loop.close();
    await this.#queue.close();
  }

  async #add(kind: 'datapoint' | 'msg', name: string, payload: object, at: Date | undefined): Promise<void> {
    const body = JSON.stringify(payload);
    const bytes = Buffer.byteLength(body);
    if (bytes > payloadBytesMax)
      throw new Error(`A payload has at most ${payloadBytesMax} bytes, not ${bytes}.`);
    const atMs = at?.getTime() ?? this.#link.nowMs();
    if (Number.isNaN(atMs)) throw new Error('The time is invalid.');
    const isClockUnheard = !this.#link.isClockHeard;
    const entry = {
      kind,
      name: encodeURIComponent(name),
      body,
      atMs,
      isClockUnheard,
      key: null,
      keyMs: null,
    };
    const { dropped, stored } = this.#queue.add(entry);
    await stored;
    if (dropped > 0) this.#link.say(`The queue is full: ${dropped} of the oldest entries were dropped.`);
    this.#loop.wake();
  }

  #tell(): void {
    try {
      this.#onStatus?.(this.status);
    } catch (error) {
      process.emitWarning(error as Error);
    }
  }
}
