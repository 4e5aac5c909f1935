import type { Connection } from './connection.ts';
import type { ServerLink } from './link.ts';
import { putOffSeconds } from './pace.ts';
import type { DeviceQueue } from './queue/queue.ts';

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

/** Handles mail, one at a time, and settles each as its handler says. */
export class MailWorker {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  readonly #connection: Connection;
  handler: MailHandler;

  constructor(link: ServerLink, queue: DeviceQueue, connection: Connection, handler: MailHandler) {
    this.#link = link;
    this.#queue = queue;
    this.#connection = connection;
    this.handler = handler;
  }

  /** Works until the mailbox is empty. Rejects if the server does not answer. */
  async workThrough(): Promise<void> {
    let [attempt, requeues] = [0, 0];
    while (!this.#link.isClosing) {
      const answer = await this.#link.ask(this.#connection, 'GET', '/v1/mailbox/next');
      if (answer.status === 204) return;
      if (answer.status !== 200) {
        await this.#link.waitAfter(answer, attempt);
        attempt += 1;
        continue;
      }
      attempt = 0;
      const { 'x-mail-id': id, 'x-mail-name': name } = answer.headers;
      const mail = {
        id: String(id),
        name: String(name),
        payload: JSON.parse(answer.body.toString()),
        body: answer.body,
      };
      const verb = await this.#handleOnce(mail);
      await this.#settle(mail.id, verb);
      requeues = verb === 'requeue' ? requeues + 1 : 0;
      if (verb !== 'requeue') continue;
      await this.#queue.unsettle(mail.id);
      const seconds = putOffSeconds(requeues, this.#link.mailbox ?? 0, this.#link.pace.retrySecondsMax);
      await this.#link.pause(seconds);
    }
  }

  async #handleOnce(mail: IncomingMail): Promise<MailVerb> {
    const before = this.#queue.verbOf(mail.id);
    if (before !== undefined) return before as MailVerb;
    const verb = await this.#handle(mail);
    // A crash from here on handles it no second time.
    await this.#queue.settle(mail.id, verb);
    return verb;
  }

  async #handle(mail: IncomingMail): Promise<MailVerb> {
    try {
      const verb = (await this.handler(mail)) ?? 'ack';
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

  /** Tells the server until it has heard. 404 and 409: the mail is gone, expired or withdrawn, say. */
  async #settle(mailId: string, verb: MailVerb): Promise<void> {
    for (let attempt = 0; !this.#link.isClosing; attempt += 1) {
      try {
        const answer = await this.#link.ask(this.#connection, 'PUT', `/v1/mailbox/${verb}/${mailId}`);
        if ([200, 404, 409].includes(answer.status)) return;
        await this.#link.waitAfter(answer, attempt);
      } catch (error) {
        await this.#link.waitAfter(error, attempt);
      }
    }
  }
}
