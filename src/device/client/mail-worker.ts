import type { ServerLink } from './link.ts';
import { Notifier } from './notifier.ts';
import { putOffSeconds } from './pace.ts';
import type { DeviceQueue } from './queue/queue.ts';
import type { Settlement } from './sending/sync-request.ts';

/** A mail, as a handler gets it. */
export interface IncomingMail {
  readonly id: string;
  readonly name: string;
  readonly payload: Record<string, unknown>;
  /** The payload as it was sent, byte for byte. */
  readonly body: Buffer;
}

/** The mail is done. */
export const ACK = 'ack';
/** The mail can never be done. */
export const REJECT = 'reject';
/** The mail cannot be done now: it comes again. */
export const REQUEUE = 'requeue';

/** How a mail is settled. */
export type MailVerb = typeof ACK | typeof REJECT | typeof REQUEUE;

/** Returns how the mail is settled, by default `ACK`; an exception rejects it. */
// biome-ignore lint/suspicious/noConfusingVoidType: what a function without a return statement returns
export type MailHandler = (mail: IncomingMail) => MailVerb | void | Promise<MailVerb | void>;

/** Has mail handled, one at a time. What it asks for, and what it has to say, goes with the requests of `SyncLoop`. */
export class MailWorker {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  /** Has `SyncLoop` look again at what there is to do. */
  readonly #wake: () => void;
  readonly #emptied = new Notifier();
  handler: MailHandler;
  /** There may be mail. */
  #isWanted = false;
  #isHandling = false;
  #settlement: Settlement | undefined;
  #requeues = 0;
  #againAtMs = 0;

  constructor(link: ServerLink, queue: DeviceQueue, wake: () => void, handler: MailHandler) {
    this.#link = link;
    this.#queue = queue;
    this.#wake = wake;
    this.handler = handler;
  }

  /** Takes mail until the mailbox is empty. */
  async workThrough(): Promise<void> {
    this.look();
    await this.#emptied.wait(Number.POSITIVE_INFINITY, this.#link.closing);
  }

  /** Has the mailbox looked at. */
  look(): void {
    this.#isWanted = true;
    this.#wake();
  }

  /** True if no mail is in hand, and the mailbox was empty when last heard of, or all in it was put off. */
  get isIdle(): boolean {
    const isFree = !this.#isHandling && this.#settlement === undefined;
    return isFree && (!this.#isWanted || performance.now() < this.#againAtMs);
  }

  /** True if a mail may come with the next answer. */
  get takesMail(): boolean {
    return this.#isWanted && !this.#isHandling && performance.now() >= this.#againAtMs;
  }

  /** Seconds after which mail that was put off is looked at again. */
  get secondsToLook(): number {
    const seconds = Math.max(0, this.#againAtMs - performance.now()) / 1_000;
    return this.#isWanted && !this.#isHandling ? seconds : Number.POSITIVE_INFINITY;
  }

  /** What the server is to be told; it stays until `settled`. */
  get settlement(): Settlement | undefined {
    return this.#settlement;
  }

  /** The server has heard of the settlement. 404 and 409 do as well: the mail is gone, expired or withdrawn, say. */
  async settled(): Promise<void> {
    const settlement = this.#settlement;
    this.#settlement = undefined;
    if (settlement?.verb === 'requeue') await this.#queue.unsettle(settlement.id).catch(() => {});
  }

  empty(): void {
    this.#isWanted = false;
    this.#requeues = 0;
    this.#emptied.notify();
  }

  /** Has a mail handled, which is not waited for. */
  take(id: string, name: string, body: Buffer): void {
    this.#isHandling = true;
    void this.#handleOnce(id, name, body).then((verb) => {
      this.#settlement = { id, verb };
      this.#isHandling = false;
      this.#requeues = verb === 'requeue' ? this.#requeues + 1 : 0;
      const { mailbox, pace } = this.#link;
      const seconds =
        this.#requeues === 0 ? 0 : putOffSeconds(this.#requeues, mailbox ?? 0, pace.retrySecondsMax);
      this.#againAtMs = performance.now() + seconds * 1_000;
      this.#wake();
    });
  }

  async #handleOnce(id: string, name: string, body: Buffer): Promise<MailVerb> {
    const before = this.#queue.verbOf(id);
    if (before !== undefined) return before as MailVerb;
    const verb = await this.#handle(id, name, body);
    // A crash from here on handles it no second time. Where the disk is full the server is told all the same.
    await this.#queue.settle(id, verb).catch((error: Error) => {
      this.#link.say(`It could not be noted that a mail was handled: ${error.message}`);
    });
    return verb;
  }

  async #handle(id: string, name: string, body: Buffer): Promise<MailVerb> {
    try {
      const verb = (await this.handler({ id, name, payload: JSON.parse(body.toString()), body })) ?? 'ack';
      if (!['ack', 'reject', 'requeue'].includes(verb)) {
        throw new Error(`A handler returns ACK, REJECT, REQUEUE or nothing, not ${JSON.stringify(verb)}.`);
      }
      return verb;
    } catch (error) {
      this.#link.say(
        `The handler of mail failed, so the mail is rejected: ${(error as Error)?.message ?? error}`,
      );
      return 'reject';
    }
  }
}
