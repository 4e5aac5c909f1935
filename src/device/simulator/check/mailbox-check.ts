import type { SettlementVerb } from '../devices/ledger.ts';
import { simulatedDeviceId } from '../devices/simulated-identity.ts';
import type { CheckFindings } from './findings.ts';
import type { SettledMail } from './ledger-entries.ts';

/** A change of a mail, as the log has it. */
export interface MailChange {
  mailId: string;
  name: string;
  event: string;
}

const verbOfEvent: Readonly<Record<string, SettlementVerb>> = {
  acked: 'ack',
  rejected: 'reject',
  requeued: 'requeue',
};

/** Compares a mailbox with its log, and the log with what the device and the sender were answered. */
export class MailboxCheck {
  readonly #id: string;
  readonly #findings: CheckFindings;
  /** Ids of the mails that wait, in order. */
  readonly #queue: string[] = [];
  readonly #queuedIds = new Set<string>();
  readonly #queuedNames = new Map<string, number>();
  readonly #logged = new Map<string, number>();

  constructor(device: number, findings: CheckFindings) {
    this.#id = simulatedDeviceId(device);
    this.#findings = findings;
  }

  /** Mails that must wait. */
  get waiting(): readonly string[] {
    return this.#queue;
  }

  /** Mails of that name that were ever queued. */
  queuedOf(name: string): number {
    return this.#queuedNames.get(name) ?? 0;
  }

  /** Takes the next change in the order of the log. */
  take({ mailId, name, event }: MailChange): void {
    if (event === 'queued') {
      if (this.#queuedIds.has(mailId)) this.#findings.note('doubled', `the mail ${mailId} of ${this.#id}`);
      this.#queuedIds.add(mailId);
      this.#queuedNames.set(name, (this.#queuedNames.get(name) ?? 0) + 1);
      this.#queue.push(mailId);
      return;
    }
    const verb = verbOfEvent[event];
    if (verb === undefined) {
      if (event === 'fetched') return;
      this.#remove(mailId);
      this.#findings.note(
        'lost',
        `the mail ${mailId} of ${this.#id} is ${event}, which no device has asked for`,
      );
      return;
    }
    const key = `${verb} ${mailId}`;
    this.#logged.set(key, (this.#logged.get(key) ?? 0) + 1);
    // A device settles what it was given, which is the head.
    if (this.#queue[0] !== mailId) {
      this.#findings.note(
        'out_of_order',
        `the mail ${mailId} of ${this.#id} was ${event}, and not the first`,
      );
    }
    this.#remove(mailId);
    if (verb === 'requeue') this.#queue.push(mailId);
  }

  /** Holds what the device was answered against the log. */
  checkSettlements(settlements: readonly SettledMail[]): void {
    const answered = new Map<string, number>();
    const doubted = new Map<string, number>();
    for (const { verb, mailId, isDoubtful } of settlements) {
      const counts = isDoubtful ? doubted : answered;
      const key = `${verb} ${mailId}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, count] of answered) {
      const text = `${key} of ${this.#id}`;
      if ((this.#logged.get(key) ?? 0) < count) this.#findings.note('lost', text);
    }
    for (const [key, count] of this.#logged) {
      const most = (answered.get(key) ?? 0) + (doubted.get(key) ?? 0);
      if (most === 0) this.#findings.note('unknown', `${key} of ${this.#id}`);
      else if (count > most) this.#findings.note('doubled', `${key} of ${this.#id}`);
    }
  }

  /** Holds the mails that the sender was answered, in their order, against the log. */
  checkSent(mailIds: readonly string[]): void {
    const places = new Map([...this.#queuedIds].map((mailId, place) => [mailId, place]));
    let last = -1;
    for (const mailId of mailIds) {
      const place = places.get(mailId);
      if (place === undefined) this.#findings.note('lost', `the mail ${mailId} to ${this.#id}`);
      else if (place < last) this.#findings.note('out_of_order', `the mail ${mailId} to ${this.#id}`);
      last = Math.max(last, place ?? -1);
    }
  }

  /** Holds the mailbox itself against what it must be. */
  checkMailbox(size: number, mailIds?: readonly string[]): void {
    const missing = this.#queue.length - size;
    for (let mail = 0; mail < missing; mail += 1)
      this.#findings.note('lost', `a mail in the mailbox of ${this.#id}`);
    for (let mail = 0; mail < -missing; mail += 1)
      this.#findings.note('doubled', `a mail in the mailbox of ${this.#id}`);
    if (mailIds === undefined || missing !== 0) return;
    if (mailIds.join() !== this.#queue.join())
      this.#findings.note('out_of_order', `the mailbox of ${this.#id}`);
  }

  #remove(mailId: string): void {
    const at = this.#queue.indexOf(mailId);
    if (at >= 0) this.#queue.splice(at, 1);
  }
}
