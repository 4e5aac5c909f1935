import { uuidv7 } from 'uuidv7';
import type { TestDevice } from '../harness/device.ts';
import type { Answer, Requester } from './client.ts';
import type { Findings } from './findings.ts';
import { type LedgerMail, type ListedMail, MailboxLedger, type Verb } from './mailbox-ledger.ts';
import type { Random } from './random.ts';
import type { RecordLedger, SentRecord } from './record-ledger.ts';

const waitingMax = 40;
const repeatableMax = 20;
/** Younger than any idempotency window that a storm is run with. */
const repeatableMsMax = 60_000;

/** One device with everything that is known of it: what it does at random, and what must be so after a crash. */
export class Subject {
  readonly device: TestDevice;
  readonly mailbox: MailboxLedger;
  /** True if one client alone works on the mailbox, so that every answer is known beforehand. */
  readonly isExclusive: boolean;
  /**
   * True if a refused request was not done. Where a database is asked, it may have been done all the same, also later.
   */
  readonly #isRefusalFinal: boolean;
  readonly #records: RecordLedger;
  readonly #findings: Findings;
  readonly #random: Random;
  #answeredKeyed: SentRecord[] = [];
  #doubtedKeyed: SentRecord[] = [];
  #sequence = 0;

  constructor(
    device: TestDevice,
    isExclusive: boolean,
    records: RecordLedger,
    findings: Findings,
    random: Random,
    isRefusalFinal = true,
  ) {
    this.device = device;
    this.#isRefusalFinal = isRefusalFinal;
    this.mailbox = new MailboxLedger(device.deviceId, findings);
    this.isExclusive = isExclusive;
    this.#records = records;
    this.#findings = findings;
    this.#random = random;
  }

  /** One request, or two, of whatever a device or its operator may do. @throws when it is not answered. */
  async act(client: Requester): Promise<void> {
    const chance = this.#random.next();
    if (this.#doubtedKeyed.length > 0 && this.#random.next() < 0.3) await this.#retry(client);
    else if (chance < 0.45) await this.send(client);
    else if (chance < 0.5) await this.#repeatAnswered(client);
    else if (chance < 0.67) await this.enqueue(client);
    else if (chance < 0.85) await this.settle(client);
    else if (chance < 0.9) await this.#settleAgain(client);
    else await this.#look(client);
  }

  async send(client: Requester): Promise<void> {
    const token = `${this.device.deviceId}-${this.#sequence}`;
    const isLarge = this.#random.next() < 0.01;
    const padding = 'x'.repeat(this.#random.integer(0, isLarge ? 60_000 : 300));
    const record: SentRecord = {
      token,
      sender: this.device.deviceId,
      sequence: this.#sequence++,
      deviceId: this.device.deviceId,
      kind: this.#random.next() < 0.7 ? 'datapoint' : 'message',
      payload: JSON.stringify({ token, padding }),
      key: this.#random.next() < 0.5 ? uuidv7() : undefined,
      state: 'unanswered',
      sentAtMs: Date.now(),
      isRepeated: false,
      isStored: false,
    };
    this.#records.sending(record);
    const answer = await this.#sendRecord(client, record);
    if (!this.#isTaken(answer, 201)) {
      this.#leave(record);
      return;
    }
    record.state = 'answered';
    this.#findings.count(`${record.kind}: answered 201`);
    this.#expectReplay(record, answer, false);
    if (record.key !== undefined)
      this.#answeredKeyed = [record, ...this.#answeredKeyed].slice(0, repeatableMax);
  }

  async enqueue(client: Requester): Promise<void> {
    const { mailbox } = this;
    if (mailbox.waiting.size >= waitingMax) return this.settle(client);
    const token = `${this.device.deviceId}-mail-${this.#sequence++}`;
    const payload = JSON.stringify({ token, padding: 'y'.repeat(this.#random.integer(0, 300)) });
    const mail = mailbox.enqueuing(token, payload);
    const answer = await client.admin('POST', `${this.device.adminPath}/mail/order`, payload);
    if (!this.#isTaken(answer, 201)) {
      if (this.#isRefusalFinal) mailbox.enqueued(mail, undefined);
      return;
    }
    const body = JSON.parse(answer.text) as { mail_id: string; mailbox_size: number };
    mailbox.enqueued(mail, body.mail_id);
    this.#findings.count('mail: queued, answered 201');
    this.#expectSize(body.mailbox_size);
  }

  async settle(client: Requester): Promise<void> {
    const idle = this.mailbox.idle();
    // Mostly the head, as devices do.
    const mail = this.#random.next() < 0.7 ? idle[0] : this.#random.pick(idle);
    const verb = this.#random.pick<Verb>(['ack', 'ack', 'ack', 'reject', 'requeue']) ?? 'ack';
    if (mail === undefined) await this.#look(client);
    else await this.#settleBy(client, mail, verb);
  }

  /**
   * After a crash: the mailbox against the model, then everything that was in doubt once more, as a device
   * would. A settlement must be answered 200 whether it had happened or not.
   */
  async resume(client: Requester): Promise<void> {
    this.#doubtedKeyed = [];
    const listed = await this.#list(client);
    this.mailbox.check(listed);
    await this.#expectHead(client, listed);
    for (const mail of this.mailbox.unsettled()) {
      const verb = mail.open?.what as Verb;
      await this.#settleBy(client, mail, verb, this.mailbox.mayBeForgotten(mail));
      this.#findings.count(`repeated after a crash: ${verb}, answered 200`);
    }
    for (const record of this.#repeatable().slice(0, 3)) {
      const answer = await this.#sendRecord(client, record);
      this.#expectReplay(record, answer, true);
      this.#findings.count('repeated after a crash: answered key, a replay');
    }
  }

  /** A keyed request that was never answered, twice at once: it ends up stored exactly once. */
  async repeat(client: Requester, record: SentRecord): Promise<void> {
    record.isRepeated = true;
    const answers = await Promise.all([this.#sendRecord(client, record), this.#sendRecord(client, record)]);
    const statuses = answers.map(({ status }) => status);
    const stored = answers.filter(({ headers }) => headers['idempotent-replayed'] !== 'true').length;
    const storedMax = record.isStored ? 0 : 1;
    this.#findings.expect(
      statuses.every((status) => status === 201) && stored <= storedMax,
      () =>
        `${record.token}, repeated after a crash, was answered ${statuses} and stored ${stored} times more`,
    );
    record.state = 'answered';
    this.#findings.count(
      `repeated after a crash: unanswered key, ${stored === 0 ? 'a replay' : 'stored only now'}`,
    );
  }

  async #settleBy(client: Requester, mail: LedgerMail, verb: Verb, mayBeForgotten = false): Promise<void> {
    this.mailbox.settling(mail, verb);
    const answer = await client.device(this.device, 'PUT', `/v1/mailbox/${verb}/${mail.id}`);
    if (mayBeForgotten && answer.status === 404) return this.mailbox.forgotten(mail);
    if (!this.#isTaken(answer, 200)) {
      if (this.#isRefusalFinal) mail.open = undefined;
      return;
    }
    this.mailbox.settledBy(mail, verb);
    this.#findings.count(`mail: ${verb}, answered 200`);
    this.#expectSize(Number(answer.headers['x-mailbox-size']));
  }

  /** D15: the same verb again is 200, another is 409; this changes nothing. */
  async #settleAgain(client: Requester): Promise<void> {
    const before = this.#random.pick(this.mailbox.settled.slice(0, 10));
    if (before === undefined || !this.#isKnown) return this.settle(client);
    const verb = this.#random.pick<Verb>(['ack', 'reject']) ?? 'ack';
    const answer = await client.device(this.device, 'PUT', `/v1/mailbox/${verb}/${before.id}`);
    if (!this.#isTaken(answer, verb === before.verb ? 200 : 409)) return;
    this.#findings.count('mail: settled again, answered as before');
    this.#expectSize(Number(answer.headers['x-mailbox-size']));
  }

  async #repeatAnswered(client: Requester): Promise<void> {
    const record = this.#random.pick(this.#repeatable());
    if (record === undefined) return this.send(client);
    const answer = await this.#sendRecord(client, record);
    if (this.#isTaken(answer, 201)) this.#expectReplay(record, answer, true);
    this.#findings.count('answered key repeated: a replay');
  }

  /**
   * Sends a doubted record again, as a device does that knows of no answer, perhaps while the first request is still
   * being done.
   */
  async #retry(client: Requester): Promise<void> {
    const record = this.#doubtedKeyed.shift();
    if (record === undefined) return;
    const answer = await this.#sendRecord(client, record);
    if (!this.#isTaken(answer, 201)) {
      this.#leave(record);
      return;
    }
    record.state = 'answered';
    const isReplay = answer.headers['idempotent-replayed'] === 'true';
    this.#findings.count(`tried again under load: ${isReplay ? 'a replay' : 'stored only then'}`);
  }

  /** Refused, or nobody knows. */
  #leave(record: SentRecord): void {
    if (this.#isRefusalFinal) {
      record.state = 'refused';
      return;
    }
    // It may come in behind what is sent after it.
    record.isRepeated = true;
    const isOld = Date.now() - record.sentAtMs > repeatableMsMax;
    if (record.key !== undefined && !isOld) this.#doubtedKeyed.push(record);
  }

  /** True if size and head of the mailbox are known. */
  get #isKnown(): boolean {
    return this.isExclusive && !this.mailbox.isInDoubt;
  }

  #repeatable(): SentRecord[] {
    const sinceMs = Date.now() - repeatableMsMax;
    return this.#answeredKeyed.filter(({ sentAtMs }) => sentAtMs > sinceMs);
  }

  async #look(client: Requester): Promise<void> {
    if (this.#random.next() < 0.3) {
      const beat = await client.device(this.device, 'POST', '/v1/heartbeat');
      this.#isTaken(beat, 201);
      return;
    }
    const isKnown = this.#isKnown;
    const head = isKnown ? this.mailbox.waiting.values().next().value : undefined;
    const answer = await client.device(this.device, 'GET', '/v1/mailbox/next');
    if (!this.#isTaken(answer, answer.status === 204 ? 204 : 200)) return;
    this.#findings.count('looks at a mailbox');
    if (!isKnown) return;
    this.#expectSize(Number(answer.headers['x-mailbox-size']));
    this.#findings.expect(
      answer.headers['x-mail-id'] === (head?.id ?? '') && answer.text === (head?.payload ?? ''),
      () => `the head of ${this.device.deviceId} is ${answer.headers['x-mail-id']}, not ${head?.id}`,
    );
  }

  async #list(client: Requester): Promise<ListedMail[]> {
    const answer = await client.admin('GET', `${this.device.adminPath}/mail?limit=1000`);
    return (JSON.parse(answer.text) as { items: ListedMail[] }).items;
  }

  async #expectHead(client: Requester, [first, ...others]: ListedMail[]): Promise<void> {
    const { status, headers } = await client.device(this.device, 'HEAD', '/v1/mailbox/next');
    const size = first === undefined ? 0 : others.length + 1;
    this.#findings.expect(
      status === (first ? 200 : 204) &&
        headers['x-mail-id'] === (first?.mail_id ?? '') &&
        headers['x-mailbox-size'] === String(size),
      () => `${this.device.deviceId} lists ${size} mails and answers ${status} ${JSON.stringify(headers)}`,
    );
  }

  #sendRecord(client: Requester, { kind, payload, key }: SentRecord): Promise<Answer> {
    const route = kind === 'datapoint' ? 'datapoint' : 'msg';
    return client.device(this.device, 'POST', `/v1/${route}/any`, payload, key);
  }

  #expectReplay({ token, key }: SentRecord, { status, headers }: Answer, isReplay: boolean): void {
    const replayed = headers['idempotent-replayed'];
    this.#findings.expect(
      status === 201 && replayed === (isReplay ? 'true' : undefined),
      () => `${token} with the key ${key} was answered ${status}, replayed ${replayed}`,
    );
  }

  #expectSize(size: number): void {
    const expected = this.mailbox.waiting.size;
    if (!this.#isKnown) return;
    this.#findings.expect(
      size === expected,
      () => `the mailbox of ${this.device.deviceId} has ${expected} mails and answers ${size}`,
    );
  }

  /** A full queue or the end of the server may refuse any request; whatever else comes is wrong. */
  #isTaken(answer: Answer, status: number): boolean {
    if (answer.status === status) return true;
    if (answer.status === 503) this.#findings.count('refused with 503');
    else if (answer.status === 0 && !this.#isRefusalFinal) this.#findings.count('not answered');
    else this.#findings.violation(`${this.device.deviceId} was answered ${answer.status}: ${answer.text}`);
    return false;
  }
}
