import { headerOf } from '../connection/client-connection.ts';
import { isBackingOff, isRotating, isUp, mailTimer, wantsHead, wantsNext } from './device-states.ts';
import type { SettlementVerb } from './ledger.ts';
import { shownBody, type World } from './world.ts';

/** A mail that a device has fetched, with what it has decided. */
interface MailInHand {
  id: string;
  verb: SettlementVerb | undefined;
  isTried: boolean;
}

/** What is said of a mail. */
export interface SentSettlement {
  id: string;
  verb: SettlementVerb;
}

/** Streams are opened again after 2.5 to 7.5 s, as the server asks for (D20). */
const reopenMsMin = 2_500;
const reopenMsSpread = 5_000;

/** Mail handling of the devices: learn of it, fetch, think, and acknowledge, reject, requeue or crash. */
export class MailClient {
  readonly #world: World;
  /** Only of devices that have one. */
  readonly #inHand = new Map<number, MailInHand>();
  #isFinishing = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** Mails that a device has decided about and not been answered. */
  get deciding(): number {
    let count = 0;
    for (const { verb } of this.#inHand.values()) if (verb !== undefined) count += 1;
    return count;
  }

  /** The device is there: it looks for mail in its way. */
  begin(device: number): void {
    const { states } = this.#world;
    const { mail } = this.#world.planOf(device);
    if (mail === undefined || this.#isFinishing) return;
    if (this.#inHand.has(device)) return;
    if (mail.by === 'stream') this.#openStream(device);
    else if (mail.by === 'poll') {
      states.want(device, wantsHead, true);
      states.mailDueMs[device] = this.#world.nowMs();
      this.#later(device, mail.pollMs);
    }
  }

  /** The time to think is over, or to look again. */
  onTimer(device: number, dueMs: number): void {
    const world = this.#world;
    const { states } = world;
    const inHand = this.#inHand.get(device);
    if (inHand !== undefined && inHand.verb === undefined) this.#decide(device, inHand);
    else if (inHand === undefined && states.has(device, isUp)) {
      this.begin(device);
      states.mailDueMs[device] = dueMs;
      if (world.planOf(device).mail?.by === 'heartbeat') states.want(device, wantsNext, true);
    }
    world.onIdle(device);
  }

  /** It was told that there is mail. */
  onAvailable(device: number): void {
    if (this.#isFinishing) return;
    const { states } = this.#world;
    if (!states.wantsAny(device, wantsNext)) states.mailDueMs[device] = this.#world.nowMs();
    states.want(device, wantsNext, true);
  }

  /** A request has told that there is mail: whoever has a stream knows that already. */
  onHint(device: number): void {
    const by = this.#world.planOf(device).mail?.by;
    if (by !== undefined && by !== 'stream' && !this.#inHand.has(device)) this.onAvailable(device);
  }

  /** What it has decided, which is to be sent now. */
  decided(device: number): SentSettlement | undefined {
    const inHand = this.#inHand.get(device);
    if (inHand?.verb === undefined) return undefined;
    const { verb, id } = inHand;
    if (inHand.isTried) this.#world.counts.retries += 1;
    inHand.isTried = true;
    return { id, verb };
  }

  /** Sends what it has decided; false if it has not. */
  settle(device: number): boolean {
    const settlement = this.decided(device);
    if (settlement === undefined) return false;
    this.#world.request(device, {
      route: 'settle',
      method: 'PUT',
      path: `/v1/mailbox/${settlement.verb}/${settlement.id}`,
      dueMs: this.#dueMs(device),
      onAnswer: (status, text) => this.settled(device, settlement, status, text),
      onLater: (isDoubtful) => this.unsettled(device, settlement, isDoubtful),
    });
    return true;
  }

  /** The server has answered what it has decided. */
  settled(device: number, { id, verb }: SentSettlement, status: number, text: string): void {
    const world = this.#world;
    this.#inHand.delete(device);
    if (status === 200) {
      world.ledger.settlement(world.numberOf(device), id, verb, 'answered');
      world.counts.mails += 1;
    } else world.complain(`${verb} of a mail was answered ${status}: ${shownBody(text)}`);
    this.#after(device, text);
  }

  /** What it has decided is to be sent again; `isDoubtful` if nobody knows whether it was done. */
  unsettled(device: number, { id, verb }: SentSettlement, isDoubtful: boolean): void {
    // A repeated requeue is done again (D14): it looks what is next instead.
    if (verb !== 'requeue' || !isDoubtful) return;
    const world = this.#world;
    this.#inHand.delete(device);
    world.ledger.settlement(world.numberOf(device), id, verb, 'doubted');
    this.onAvailable(device);
  }

  /** True if a request that says what it has decided, or nothing of a mail, is to ask for the next one. */
  asks(device: number, isSettling: boolean): boolean {
    const { states } = this.#world;
    if (this.#isFinishing || this.#world.planOf(device).mail === undefined) return false;
    if (!isSettling && (this.#inHand.has(device) || !states.wantsAny(device, wantsNext | wantsHead)))
      return false;
    // What it is told while the request is under way counts for the next one.
    states.want(device, wantsNext | wantsHead, false);
    return true;
  }

  /** Fetches the next mail, or looks whether there is one; false if it wants neither. */
  fetch(device: number): boolean {
    const world = this.#world;
    const { states } = world;
    if (this.#inHand.has(device) || this.#isFinishing) return false;
    const isNext = states.wantsAny(device, wantsNext);
    if (!isNext && !states.wantsAny(device, wantsHead)) return false;
    states.want(device, wantsHead, false);
    world.request(device, {
      route: 'next',
      method: isNext ? 'GET' : 'HEAD',
      path: '/v1/mailbox/next',
      dueMs: this.#dueMs(device),
      onAnswer: (status, text) => {
        if (status === 204) states.want(device, wantsNext, false);
        else if (status !== 200) world.complain(`next was answered ${status}: ${shownBody(text)}`);
        else if (isNext) this.take(device, headerOf(text, 'x-mail-id'));
        else this.onAvailable(device);
      },
      onLater: () => {
        if (!isNext) states.want(device, wantsHead, true);
      },
    });
    return true;
  }

  /** From now on nothing is fetched, and what is not decided is forgotten. */
  finish(): void {
    this.#isFinishing = true;
    for (const [device, { verb }] of this.#inHand) if (verb === undefined) this.#inHand.delete(device);
  }

  /** At the very end: what was decided and never answered may be done. Answers how many. */
  close(): number {
    const world = this.#world;
    for (const [device, { id, verb, isTried }] of this.#inHand) {
      if (verb !== undefined && isTried) world.ledger.settlement(world.numberOf(device), id, verb, 'doubted');
    }
    return this.deciding;
  }

  #openStream(device: number): void {
    const world = this.#world;
    if (world.connections.hasStream(device)) return;
    const sinceMs = world.nowMs();
    const text = world.textOf(device, 'GET', '/v1/events', 'Accept: text/event-stream\r\n');
    world.connections.stream(device, text, {
      onEvents: (events) => {
        if (events.includes('event: connected')) {
          const nowMs = world.nowMs();
          world.samples.add('stream', nowMs - sinceMs, nowMs - sinceMs);
        }
        if (!events.includes('event: new_mail')) return;
        this.onAvailable(device);
        world.onIdle(device);
      },
      onClosed: (isOurs, status) => {
        if (!isOurs && status === undefined) world.counts.failures += 1;
        else if (status === 429 || status === 503 || (status === 401 && world.states.has(device, isRotating)))
          world.counts.refused += 1;
        else if (status !== undefined) world.complain(`the event stream was answered ${status}`);
        if (!isOurs && !this.#inHand.has(device) && world.states.has(device, isUp)) {
          this.#later(device, reopenMsMin + reopenMsSpread * world.draw(device));
        }
      },
    });
  }

  /** A mail is there: it thinks about it for a while. */
  take(device: number, id: string): void {
    const world = this.#world;
    const { mail } = world.planOf(device);
    if (mail === undefined || this.#isFinishing) return;
    this.#inHand.set(device, { id, verb: undefined, isTried: false });
    world.states.want(device, wantsNext, false);
    this.#later(device, mail.thinkMs * (0.5 + world.draw(device)));
  }

  #decide(device: number, inHand: MailInHand): void {
    const world = this.#world;
    const { mail } = world.planOf(device);
    if (mail === undefined) return;
    const drawn = world.draw(device);
    world.states.mailDueMs[device] = world.nowMs();
    if (drawn < mail.ends.crash) {
      // It forgets the mail, and everything that was under way.
      this.#inHand.delete(device);
      world.counts.crashes += 1;
      world.connections.dropDevice(device);
      this.#later(device, mail.restartMs);
      return;
    }
    inHand.verb = drawn < mail.ends.reject ? 'reject' : drawn < mail.ends.requeue ? 'requeue' : 'ack';
  }

  /** A mail is settled: there may be more, and the stream may be gone meanwhile. */
  #after(device: number, text: string): void {
    if (this.#isFinishing) return;
    const { states } = this.#world;
    if (Number(headerOf(text, 'x-mailbox-size')) > 0) this.onAvailable(device);
    const { mail } = this.#world.planOf(device);
    if (mail?.by === 'stream' && states.has(device, isUp) && !states.has(device, isBackingOff))
      this.#openStream(device);
    if (mail?.by === 'poll') this.#later(device, mail.pollMs);
  }

  #later(device: number, pauseMs: number): void {
    const { states } = this.#world;
    states.setTimer(device, mailTimer, this.#world.nowMs() + pauseMs);
  }

  #dueMs(device: number): number {
    const { mailDueMs, readyMs } = this.#world.states;
    return Math.max(mailDueMs[device] ?? 0, readyMs[device] ?? 0);
  }
}
