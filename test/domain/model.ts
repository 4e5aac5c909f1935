/**
 * A mail in the model, which says as plainly as it can be said what a mailbox and a sender of records must do (D13 to
 * D18, D31).
 */
export interface ModelMail {
  id: string;
  name: string;
  payload: string;
  requeues: number;
  /** Undefined: any number. */
  requeuesMax: number | undefined;
  /** A newer mail of this key replaces it until it is fetched or requeued. */
  key?: string | undefined;
  isFetched?: boolean;
}

/** Receipt as it must be (D17). */
export interface ModelReceipt {
  state: string;
  requeues: number;
}

const settledMax = 32;
const queuesMax = 4;

export class DeviceModel {
  readonly mailsMax: number;
  mails: ModelMail[] = [];
  settled: { id: string; verb: string }[] = [];
  /** Mail that waits for its time, which never comes within a test. */
  delayed: ModelMail[] = [];
  ended = new Map<string, ModelReceipt>();
  /** Dead letters in the order they were sent (D16). */
  deadLetters: { mail: ModelMail; reason: string }[] = [];
  keys = new Map<string, string>();
  /** Every record that was answered 201 and not as a replay, in order. */
  records: { kind: string; schema: string; payload: string }[] = [];

  /** How far each queue is stored (D30), the one that moved last first. */
  queues: { name: string; storedTo: number; skipped: number }[] = [];

  /** Ids of mails that took the place of one. */
  readonly #replacements = new Map<string, string>();

  constructor(mailsMax: number) {
    this.mailsMax = mailsMax;
  }

  /** Stores the numbers of a queue from `seq` on, a refused one being null, and answers where it stands then. */
  queue(name: string, seq: number, payloads: (string | null)[]): { storedTo: number; skipped: number } {
    const queue = this.queues.find((one) => one.name === name) ?? { name, storedTo: 0, skipped: 0 };
    let isMoved = false;
    for (const [index, payload] of payloads.entries()) {
      const number = seq + index;
      if (number <= queue.storedTo) continue;
      queue.skipped += number - queue.storedTo - 1;
      queue.storedTo = number;
      isMoved = true;
      if (payload !== null) this.records.push({ kind: 'datapoint', schema: 'reading', payload });
    }
    if (isMoved) this.queues = [queue, ...this.queues.filter((one) => one !== queue)].slice(0, queuesMax);
    return { storedTo: queue.storedTo, skipped: queue.skipped };
  }

  get head(): ModelMail | undefined {
    return this.mails[0];
  }

  get isFull(): boolean {
    return this.mails.length >= this.mailsMax;
  }

  /** Queues a mail or delays it, and ends the one that it replaces. Returns false where there is no place for it. */
  enqueue(mail: ModelMail, isDelayed: boolean): boolean {
    const replaces = (one: ModelMail): boolean =>
      mail.key !== undefined && one.key === mail.key && !one.isFetched && one.requeues === 0;
    const at = this.mails.findIndex(replaces);
    const isInPlace = at >= 0 && !isDelayed;
    if (!isDelayed && !isInPlace && this.isFull) return false;
    const replaced = this.mails[at] ?? this.delayed.find(replaces);
    if (replaced !== undefined) this.ended.set(replaced.id, { state: 'replaced', requeues: 0 });
    this.delayed = this.delayed.filter((one) => one !== replaced);
    if (isInPlace) {
      this.#replacements.set(replaced?.id ?? '', mail.id);
      this.mails[at] = mail;
    } else {
      this.mails = this.mails.filter((one) => one !== replaced);
      (isDelayed ? this.delayed : this.mails).push(mail);
    }
    return true;
  }

  /** Counts a fetch of a mail, or of the one that stands in its place. */
  fetch(id: string): void {
    const mail = this.mails.find((one) => one.id === id);
    const next = this.#replacements.get(id);
    if (mail !== undefined) mail.isFetched = true;
    else if (next !== undefined && this.mails.every((one) => one.id !== next || one.requeues === 0))
      this.fetch(next);
  }

  /** The status the verb must be answered with; moves or removes the mail where that is 200. */
  settle(verb: 'ack' | 'reject' | 'requeue', id: string): number {
    const mail = this.#take(id);
    if (mail === undefined) {
      const before = this.settled.find((one) => one.id === id);
      return before === undefined ? 404 : before.verb === verb ? 200 : 409;
    }
    const isOver = mail.requeuesMax !== undefined && mail.requeues >= mail.requeuesMax;
    if (verb === 'requeue' && !isOver) this.mails.push({ ...mail, requeues: mail.requeues + 1 });
    else this.#end(mail, verb, { ack: 'acked', reject: 'rejected', requeue: 'over_requeued' }[verb]);
    return 200;
  }

  /** The status that withdrawing must be answered with. */
  withdraw(id: string): number {
    const mail = this.#take(id);
    const delayed = this.delayed.find((one) => one.id === id);
    if (mail !== undefined) this.#end(mail, 'withdraw', 'withdrawn');
    else if (delayed !== undefined) {
      this.delayed = this.delayed.filter((one) => one !== delayed);
      this.ended.set(id, { state: 'withdrawn', requeues: 0 });
    }
    const end = this.ended.get(id)?.state;
    return end === undefined ? 404 : end === 'withdrawn' ? 200 : 409;
  }

  receipt(id: string): ModelReceipt | undefined {
    const waiting = this.mails.find((mail) => mail.id === id);
    if (waiting !== undefined) return { state: 'queued', requeues: waiting.requeues };
    if (this.delayed.some((mail) => mail.id === id)) return { state: 'delayed', requeues: 0 };
    return this.ended.get(id);
  }

  /** Queued anew as the mail of that id. */
  replay(id: string, newId: string): void {
    const letter = this.deadLetters.find(({ mail }) => mail.id === id);
    if (letter === undefined) return;
    this.deadLetters = this.deadLetters.filter((one) => one !== letter);
    this.mails.push({ ...letter.mail, id: newId, requeues: 0, key: undefined, isFetched: false });
  }

  /** Out of the mailbox. */
  #take(id: string): ModelMail | undefined {
    const index = this.mails.findIndex((mail) => mail.id === id);
    return index < 0 ? undefined : this.mails.splice(index, 1)[0];
  }

  #end(mail: ModelMail, verb: string, state: string): void {
    this.settled = [{ id: mail.id, verb }, ...this.settled].slice(0, settledMax);
    this.ended.set(mail.id, { state, requeues: mail.requeues });
    if (verb !== 'reject' && verb !== 'requeue') return;
    this.deadLetters.push({ mail, reason: state });
    this.deadLetters.sort((a, b) => (a.mail.id < b.mail.id ? -1 : 1));
  }

  send(
    kind: string,
    schema: string,
    payload: string,
    key: string | undefined,
  ): 'stored' | 'replayed' | 'reused' {
    const request = `${kind}/${schema}/${payload}`;
    const before = key === undefined ? undefined : this.keys.get(key);
    if (before !== undefined) return before === request ? 'replayed' : 'reused';
    if (key !== undefined) this.keys.set(key, request);
    this.records.push({ kind, schema, payload });
    return 'stored';
  }
}
