import { type Answer, isFinal } from '../answer.ts';
import { claimSecret } from '../claim.ts';
import type { Connection } from '../connection.ts';
import type { ServerLink } from '../link.ts';
import type { MailWorker } from '../mail-worker.ts';
import { Notifier } from '../notifier.ts';
import type { DeviceQueue, QueueEntry } from '../queue/queue.ts';
import { OwnRoute } from './own-route.ts';
import { needsClock, recordedTimeMs } from './recorded-time.ts';
import { composeSync, parseSyncAnswer, type SyncAnswer, syncSpace } from './sync-request.ts';

/** A server without `POST /v1/sync` is asked for it again after so long: it may be a newer one then. */
const syncAgainMs = 3_600_000;

/** When a device sends without being told to. */
export interface LoopOptions {
  /** A heartbeat after so long without any other request; 0: none. */
  heartbeatSeconds: number;
  /** The first connection waits up to this long, at random. */
  startDelaySeconds: number;
  /** For a device without a secret. */
  claim: string | undefined;
  /** The mailbox is looked at now and then. */
  isPolling: boolean;
}

/**
 * Carries all of a device on one connection: what waits in the queue, how mail was settled, and the next mail, by
 * `POST /v1/sync`, or by single routes where the server has none; and heartbeats in between.
 */
export class SyncLoop {
  readonly #link: ServerLink;
  readonly #queue: DeviceQueue;
  readonly #options: LoopOptions;
  readonly #ownRoute: OwnRoute;
  readonly #woken = new Notifier();
  /** Notified when something was done, or there is nothing to do. */
  readonly #turned = new Notifier();
  readonly connection: Connection;
  mail: MailWorker | undefined;
  #isHeartbeatAsked = false;
  #isBusy = false;
  #isAsleep = false;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #pollAtMs = 0;
  #pollSeconds = 0;
  #syncAgainAtMs = 0;
  #isMailTurn = false;
  /** Entries up to there go by their own route: a sync that has one of them was refused as a whole. */
  #aloneTo = 0;

  constructor(link: ServerLink, queue: DeviceQueue, options: LoopOptions) {
    this.#link = link;
    this.#queue = queue;
    this.#options = options;
    this.#ownRoute = new OwnRoute(link, queue);
    this.connection = link.connect();
  }

  /** There is something to do. */
  wake(): void {
    this.#isAsleep = false;
    this.#woken.notify();
  }

  heartbeat(): void {
    this.#isHeartbeatAsked = true;
    this.wake();
  }

  /** Waits until the queue is empty; whether it is. */
  flush(seconds: number): Promise<boolean> {
    return this.#until(() => this.#queue.entries === 0, seconds);
  }

  /**
   * Waits until all is sent, and the mail is taken that there is; whether it is. Then the connection is closed, and
   * nothing is done until something is queued, or `wake` is called.
   */
  async sleep(seconds: number): Promise<boolean> {
    this.mail?.look();
    const isIdle = await this.#until(() => this.#isIdle, seconds);
    if (isIdle) {
      this.#isAsleep = true;
      this.connection.close();
    }
    return isIdle;
  }

  get #isIdle(): boolean {
    const isDone = this.#queue.entries === 0 && (this.mail?.isIdle ?? true);
    return isDone && !this.#isBusy && !this.#isHeartbeatAsked && this.#link.secret !== undefined;
  }

  async #until(isSo: () => boolean, seconds: number): Promise<boolean> {
    const untilMs = performance.now() + seconds * 1_000;
    while (!isSo() && performance.now() < untilMs && !this.#link.isClosing) {
      await this.#turned.wait((untilMs - performance.now()) / 1_000, this.#link.closing);
    }
    return isSo();
  }

  /** Works until the device is closed. ready: called once the device has its secret, or is closed. */
  async run(ready: () => void): Promise<void> {
    const { claim, startDelaySeconds } = this.#options;
    await this.#link.pause(Math.random() * startDelaySeconds);
    let attempt = 0;
    while (!this.#link.isClosing) {
      try {
        if (this.#link.secret === undefined && claim !== undefined) {
          await claimSecret(this.#link, this.#queue, this.connection, claim);
          continue;
        }
        ready();
        const answer = await this.#work();
        if (answer === undefined) await this.#rest();
        else if (answer.status < 300) {
          [attempt, this.#sentAtMs, this.#isHeartbeatAsked] = [0, performance.now(), false];
        } else {
          await this.#link.waitAfter(answer, attempt);
          attempt += 1;
        }
      } catch (error) {
        // No answer, or a failure of its own. It must go on.
        await this.#link.waitAfter(error, attempt);
        attempt += 1;
      }
    }
    ready();
  }

  close(): void {
    this.connection.close();
  }

  async #rest(): Promise<void> {
    const seconds = Math.min(
      this.#secondsToHeartbeat,
      this.#secondsToPoll,
      this.mail?.secondsToLook ?? Number.POSITIVE_INFINITY,
    );
    if (this.#queue.head() !== undefined || this.#isHeartbeatAsked || this.mail?.settlement) return;
    await this.#woken.wait(this.#isAsleep ? Number.POSITIVE_INFINITY : seconds, this.#link.closing);
  }

  get #secondsToHeartbeat(): number {
    const { heartbeatSeconds } = this.#options;
    if (heartbeatSeconds <= 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#sentAtMs / 1_000 + heartbeatSeconds - performance.now() / 1_000);
  }

  get #secondsToPoll(): number {
    if (!this.#options.isPolling || this.mail === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#pollAtMs - performance.now()) / 1_000;
  }

  async #work(): Promise<Answer | undefined> {
    this.#isBusy = true;
    try {
      return await this.#next();
    } finally {
      this.#isBusy = false;
      this.#turned.notify();
    }
  }

  /** Does what comes next; undefined if there is nothing to do. */
  async #next(): Promise<Answer | undefined> {
    if (this.#secondsToPoll === 0 && !this.#isAsleep) {
      this.mail?.look();
      this.#pollLater();
    }
    const head = this.#queue.head();
    const hasMail = this.mail?.settlement !== undefined || this.mail?.takesMail === true;
    const isBeatDue = this.#isHeartbeatAsked || (this.#secondsToHeartbeat === 0 && !this.#isAsleep);
    if (head === undefined && !hasMail) return isBeatDue ? this.#beat() : undefined;
    // The times of what waits go by the server's clock.
    if (head !== undefined && needsClock(head, this.#link)) return this.#beat();
    if (performance.now() >= this.#syncAgainAtMs) {
      const entries = this.#entriesToSync();
      const isHeadAlone = head !== undefined && entries.length === 0;
      if (isHeadAlone && !hasMail) return this.#ownRoute.send(this.connection, head);
      const answer = await this.#sync(entries);
      if (answer !== undefined) return answer;
    }
    return this.#single(head);
  }

  async #beat(): Promise<Answer> {
    const answer = await this.#link.ask(this.connection, 'POST', '/v1/heartbeat');
    this.#hint(answer);
    return answer;
  }

  /** Takes from the answer to a request that did not ask for mail whether there is some (D28). */
  #hint({ headers }: Answer): void {
    if (headers['x-messages-available'] !== 'true') return;
    this.mail?.look();
    this.#link.mailHinted.notify();
  }

  #entriesToSync(): QueueEntry[] {
    const hasSpace = syncSpace();
    return this.#queue.run((entry) => entry.number > this.#aloneTo && hasSpace(entry));
  }

  /** Says and asks all at once; undefined if the server knows no sync. */
  async #sync(entries: readonly QueueEntry[]): Promise<Answer | undefined> {
    if (entries.length > 0 && this.#queue.order === undefined) await this.#queue.renewOrder();
    const { order } = this.#queue;
    const settlement = this.mail?.settlement;
    // With the settlement of one mail comes the next, unless all in the mailbox was put off.
    const mailsMax = this.mail?.takesMail ? 1 : 0;
    const timesMs = entries.map((entry) => recordedTimeMs(entry, this.#link));
    const body = composeSync({ order, entries, timesMs, settlement, mailsMax });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await this.#link.ask(this.connection, 'POST', '/v1/sync', headers, body);
    if (answer.status === 404) {
      this.#syncAgainAtMs = performance.now() + syncAgainMs;
      return undefined;
    }
    if (answer.status !== 200) {
      // Nothing of it was stored. The route of each will say which it is.
      if (isFinal(answer)) this.#aloneTo = entries.at(-1)?.number ?? 0;
      return answer;
    }
    const found = parseSyncAnswer(answer);
    await this.#finish(entries, (order?.base ?? 0) + found.storedTo, found);
    if (settlement !== undefined && isHeard(found.settled[0]?.status)) await this.mail?.settled();
    if (mailsMax === 1) this.#receive(found.mail);
    else this.#hint(answer);
    const busy = [...found.records, ...found.settled].find(({ status }) => !isHeard(status));
    return busy === undefined
      ? answer
      : { ...answer, status: busy.status, body: Buffer.from(JSON.stringify(busy)) };
  }

  /** Takes from the queue what is stored, and what was refused for good. */
  async #finish(entries: readonly QueueEntry[], storedTo: number, { records }: SyncAnswer): Promise<void> {
    const last = entries.at(-1);
    if (last === undefined) return;
    if (storedTo > this.#queue.lastNumber) return this.#queue.renewOrder();
    for (const [index, entry] of entries.entries()) {
      const { status = 201, error, msg } = records[index] ?? {};
      if (entry.number > storedTo || status < 400) continue;
      // Its time was out of the server's range. It has its number already, so it is sent as another one.
      if (error === 'invalid_recorded_at') {
        const { number: _, ...again } = entry;
        await this.#queue.add({ ...again, atMs: null }).stored;
        continue;
      }
      this.#queue.increment('refused');
      this.#link.say(`The server refused ${entry.kind}/${entry.name}: ${msg || error || status}`);
    }
    this.#queue.done(Math.min(storedTo, last.number));
  }

  #receive(mail: SyncAnswer['mail']): void {
    const { pollSecondsMin, pollSecondsMax } = this.#link.pace;
    const longer = Math.min(pollSecondsMax, this.#pollSeconds * 1.5);
    this.#pollSeconds = mail === undefined ? Math.max(pollSecondsMin, longer) : pollSecondsMin;
    this.#pollLater();
    if (mail === undefined) this.mail?.empty();
    else this.mail?.take(mail.id, mail.name, mail.body);
  }

  #pollLater(): void {
    const seconds = Math.max(this.#link.pace.pollSecondsMin, this.#pollSeconds);
    this.#pollAtMs = performance.now() + seconds * 1_000;
  }

  /** The same by single routes: settlements first, then an entry, then mail. */
  async #single(head: QueueEntry | undefined): Promise<Answer> {
    const settlement = this.mail?.settlement;
    if (settlement !== undefined) {
      const path = `/v1/mailbox/${settlement.verb}/${settlement.id}`;
      const answer = await this.#link.ask(this.connection, 'PUT', path);
      if (!isHeard(answer.status)) return answer;
      await this.mail?.settled();
      return { ...answer, status: 200 };
    }
    // In turns, so that neither a full queue nor a full mailbox holds up the other.
    if (head !== undefined && !(this.#isMailTurn && this.mail?.takesMail)) {
      this.#isMailTurn = true;
      const answer = await this.#ownRoute.send(this.connection, head);
      // Not with an event stream: that may have told of mail since this was answered.
      const isEmpty = this.#options.isPolling && answer.status === 201 && this.#link.mailbox === 0;
      if (isEmpty && this.mail?.takesMail) this.#receive(undefined);
      else this.#hint(answer);
      return answer;
    }
    this.#isMailTurn = false;
    const answer = await this.#link.ask(this.connection, 'GET', '/v1/mailbox/next');
    if (answer.status === 204) this.#receive(undefined);
    if (answer.status !== 200) return answer;
    const { 'x-mail-id': id, 'x-mail-name': name } = answer.headers;
    this.#receive({ id: String(id), name: String(name), body: answer.body });
    return answer;
  }
}

/** Tells whether the server's word on an item is its last. 404 and 409 of a mail: it is gone, expired or withdrawn, say. */
function isHeard(status = 200): boolean {
  return status < 500 && ![401, 403, 408, 425, 429].includes(status);
}
