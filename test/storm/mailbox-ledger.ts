import type { SettlementVerb as Verb } from '../../src/device/simulator/devices/ledger.ts';
import type { Findings } from './findings.ts';

export interface LedgerMail {
  token: string;
  payload: string;
  /** Known once its enqueuing was answered, or once it was found. */
  id: string | undefined;
  /** The turn in which the request that put it at the tail was sent, and that in which it was answered. */
  placedFrom: number;
  placedTo: number;
  requeues: number;
  /** The request on it that is under way, or that was never answered, and its turn. */
  open: { what: 'enqueue' | Verb; turn: number } | undefined;
}

/** One mail as the admin API lists it. */
export interface ListedMail {
  mail_id: string;
  name: string;
  requeue_count: number;
  payload: { token: string };
}

/** D15. */
const settledMax = 32;

/**
 * Expected content of a mailbox. Several clients may work on it at once: then the order of two mails is known where the
 * one was answered before the other was sent, and with one client it always is.
 */
export class MailboxLedger {
  readonly deviceId: string;
  /** Mails that wait, in mailbox order where one client alone works on it. */
  readonly waiting = new Map<string, LedgerMail>();
  settled: { id: string; verb: Verb; turn: number }[] = [];
  readonly #findings: Findings;
  readonly #gone = new Set<string>();
  #turn = 0;

  constructor(deviceId: string, findings: Findings) {
    this.deviceId = deviceId;
    this.#findings = findings;
  }

  /** The next point in the order of what the clients sent and were answered. */
  turn(): number {
    this.#turn += 1;
    return this.#turn;
  }

  enqueuing(token: string, payload: string): LedgerMail {
    const turn = this.turn();
    const open = { what: 'enqueue' as const, turn };
    const mail = { token, payload, id: undefined, placedFrom: turn, placedTo: turn, requeues: 0, open };
    this.waiting.set(token, mail);
    return mail;
  }

  enqueued(mail: LedgerMail, id: string | undefined): void {
    mail.open = undefined;
    mail.placedTo = this.turn();
    mail.id = id;
    if (id === undefined) this.#remove(mail);
  }

  /** Mails that no request is under way for. */
  idle(): LedgerMail[] {
    return [...this.waiting.values()].filter(({ open }) => open === undefined);
  }

  /** True if the outcome of some mail is unknown, so that neither size nor head is known. */
  get isInDoubt(): boolean {
    return this.idle().length < this.waiting.size;
  }

  /** Tells whether a settlement that is in doubt may be so old that the device is not told any more of it (D15). */
  mayBeForgotten({ open }: LedgerMail): boolean {
    // Half of them: those in doubt are remembered there as well.
    const old = this.settled[settledMax / 2 - 1];
    return open !== undefined && old !== undefined && old.turn > open.turn;
  }

  settling(mail: LedgerMail, verb: Verb): void {
    mail.open = { what: verb, turn: this.turn() };
  }

  /** It was settled, and too many were since. */
  forgotten(mail: LedgerMail): void {
    mail.open = undefined;
    this.#remove(mail);
  }

  settledBy(mail: LedgerMail, verb: Verb): void {
    const turn = mail.open?.turn ?? 0;
    mail.open = undefined;
    if (verb === 'requeue') {
      mail.requeues += 1;
      mail.placedFrom = turn;
      mail.placedTo = this.turn();
      this.waiting.delete(mail.token);
      this.waiting.set(mail.token, mail);
    } else {
      this.#remove(mail);
      this.settled = [{ id: mail.id ?? '', verb, turn: this.turn() }, ...this.settled].slice(0, settledMax);
    }
  }

  /** Holds the whole mailbox after a crash against what it must be, and takes over what was in doubt. */
  check(listed: readonly ListedMail[]): void {
    const findings = this.#findings;
    const found = new Set<string>();
    let latest = 0;
    for (const item of listed) {
      const { token } = item.payload;
      const mail = this.waiting.get(token);
      if (found.has(token)) findings.violation(`${this.#of(token)} is there twice`);
      else if (mail === undefined) {
        const was = this.#gone.has(token) ? 'was settled and is there again' : 'was never sent';
        findings.violation(`${this.#of(token)} ${was}`);
      } else {
        this.#match(mail, item);
        findings.expect(mail.placedTo >= latest, () => `${this.#of(token)} is out of its order`);
        latest = Math.max(latest, mail.placedFrom);
      }
      found.add(token);
    }
    for (const mail of [...this.waiting.values()]) this.#close(mail, found.has(mail.token));
  }

  /** Mails that a settlement was sent for and not answered. */
  unsettled(): LedgerMail[] {
    return [...this.waiting.values()].filter(({ open }) => open !== undefined);
  }

  #match(mail: LedgerMail, item: ListedMail): void {
    const findings = this.#findings;
    const text = JSON.stringify(item.payload);
    findings.count('mail: listed after a crash');
    findings.expect(text === mail.payload, () => `${this.#of(mail.token)} is not as it was sent: ${text}`);
    findings.expect(
      item.name === 'order' && (mail.id === undefined || mail.id === item.mail_id),
      () => `${this.#of(mail.token)} has another id or name: ${JSON.stringify(item)}`,
    );
    mail.id = item.mail_id;
    const more = item.requeue_count - mail.requeues;
    const mayBeMore = mail.open?.what === 'requeue' ? 1 : 0;
    findings.expect(
      more >= 0 && more <= mayBeMore,
      () => `${this.#of(mail.token)} was requeued ${item.requeue_count} times, not ${mail.requeues}`,
    );
    if (more === 1) mail.placedFrom = mail.open?.turn ?? 0;
    if (more === 1 || mail.open?.what === 'enqueue') mail.placedTo = this.turn();
    mail.requeues = item.requeue_count;
    // In mailbox order again, which a requeue that was not answered has changed.
    this.waiting.delete(mail.token);
    this.waiting.set(mail.token, mail);
  }

  #close(mail: LedgerMail, isFound: boolean): void {
    const findings = this.#findings;
    const what = mail.open?.what;
    if (what === undefined || what === 'requeue') {
      findings.expect(isFound, () => `${this.#of(mail.token)} was queued and is lost`);
    }
    if (what !== undefined) findings.count(`in doubt: ${what}, mail ${isFound ? 'there' : 'not there'}`);
    if (what === 'enqueue') mail.open = undefined;
    if (!isFound && (what === undefined || what === 'enqueue')) this.#remove(mail);
  }

  #remove(mail: LedgerMail): void {
    this.waiting.delete(mail.token);
    this.#gone.add(mail.token);
  }

  #of(token: string): string {
    return `the mail ${token} of ${this.deviceId}`;
  }
}
