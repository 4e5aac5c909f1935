import { readFileSync } from 'node:fs';
import { payloadBytesMax } from './answer.ts';
import { type Connection, parseServerUrl } from './connection.ts';
import { ServerLink } from './link.ts';
import { MailWatch } from './mail-watch.ts';
import { type MailHandler, MailWorker } from './mail-worker.ts';
import { defaultPace, type Pace } from './pace.ts';
import { DeviceQueue } from './queue/queue.ts';
import { QueueSender } from './sync-loop.ts';
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
  readonly #sender: QueueSender;
  readonly #onStatus: ClientOptions['onStatus'];
  readonly #ready: Promise<void>;
  readonly #work: Promise<void>[] = [];
  #mail: { worker: MailWorker; watch: MailWatch; connection: Connection } | undefined;

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
    const { heartbeatSeconds = 60, startDelaySeconds = 10 } = options;
    this.#sender = new QueueSender(this.#link, this.#queue, { heartbeatSeconds, startDelaySeconds, claim });
    this.#ready = new Promise((resolve) => this.#work.push(this.#sender.run(resolve)));
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
    this.#sender.heartbeat();
  }

  /** Begins to take mail, one at a time. */
  onMail(handler: MailHandler): void {
    if (this.#mail !== undefined) {
      this.#mail.worker.handler = handler;
      return;
    }
    const connection = this.#link.connect();
    const worker = new MailWorker(this.#link, this.#queue, connection, handler);
    const watch = new MailWatch(this.#link, connection);
    this.#mail = { worker, watch, connection };
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
    return this.#sender.flush(seconds);
  }

  /** Ends; what waits stays in the queue file. Gives a request that is under way so many seconds to end. */
  async close(seconds = 5): Promise<void> {
    this.#link.close();
    this.#mail?.watch.close();
    const cut = setTimeout(() => this.#cut(), seconds * 1_000);
    await Promise.allSettled(this.#work);
    clearTimeout(cut);
    this.#cut();
    await this.#queue.close();
  }

  #cut(): void {
    this.#sender.close();
    this.#mail?.connection.close();
  }

  async #add(kind: 'datapoint' | 'msg', name: string, payload: object, at: Date | undefined): Promise<void> {
    const body = JSON.stringify(payload);
    const bytes = Buffer.byteLength(body);
    if (bytes > payloadBytesMax)
      throw new Error(`A payload has at most ${payloadBytesMax} bytes, not ${bytes}.`);
    const atMs = at?.getTime() ?? this.#link.nowMs();
    if (Number.isNaN(atMs)) throw new Error('The time is invalid.');
    const entry = { kind, name: encodeURIComponent(name), body, atMs, key: null, keyMs: null };
    const { dropped, stored } = this.#queue.add(entry);
    await stored;
    if (dropped > 0) this.#link.say(`The queue is full: ${dropped} of the oldest entries were dropped.`);
    this.#sender.wake();
  }

  #tell(): void {
    try {
      this.#onStatus?.(this.status);
    } catch (error) {
      process.emitWarning(error as Error);
    }
  }
}
