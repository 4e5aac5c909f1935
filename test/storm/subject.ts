import { uuidv7 } from 'uuidv7';
import { headerOf } from '../../src/device/simulator/connection/client-connection.ts';
import type { SettlementVerb } from '../../src/device/simulator/devices/ledger.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import type { Answer, Requester } from './client.ts';
import type { Ledger } from './ledger.ts';
import { type LedgerMail, type ListedMail, MailboxLedger } from './mailbox-ledger.ts';
import type { SentRecord } from './record-ledger.ts';
import { SyncQueue } from './sync-queue.ts';

const waitingMax = 40;
const repeatableMax = 20;
/** Younger than any idempotency window that a storm is run with. */
const repeatableMsMax = 60_000;
const syncRecordsMax = 12;

/** Answer 200 to a sync. */
interface SyncAnswer {
  records: { status: number }[];
  settled: { status: number }[];
  stored_to: number;
  mail: { id: string; payload: unknown }[];
}

/** One device with everything that is known of it: what it does at random, and what must be so after a crash. */
export class Subject {
  readonly device: TestDevice;
  readonly mailbox: MailboxLedger;
  /** True if one client alone works on the mailbox, so that every answer is known beforehand. */
  readonly isExclusive: boolean;
  readonly #ledger: Ledger;
  readonly #queue: SyncQueue;
  #answeredKeyed: SentRecord[] = [];
  #doubtedKeyed: SentRecord[] = [];
  #sequence = 0;

  constructor(device: TestDevice, isExclusive: boolean, ledger: Ledger) {
    this.device = device;
    this.isExclusive = isExclusive;
    this.#ledger = ledger;
    this.#queue = new SyncQueue('storm');
    this.mailbox = new MailboxLedger(device.deviceId, ledger.findings);
  }

  /** One request, or two, of whatever a device or its operator may do. @throws when it is not answered. */
  async act(client: Requester): Promise<void> {
    const chance = this.#random.next();
    if (this.#doubtedKeyed.length > 0 && this.#random.next() < 0.3) await this.#retry(client);
    else if (chance < 0.33) await this.send(client);
    else if (chance < 0.43) await this.#sync(client);
    else if (chance < 0.45) await this.#syncAgain(client);
    else if (chance < 0.5) await this.#repeatAnswered(client);
    else if (chance < 0.67) await this.enqueue(client);
    else if (chance < 0.85) await this.settle(client);
    else if (chance < 0.9) await this.#settleAgain(client);
    else await this.#look(client);
  }

  async send(client: Requester): Promise<void> {
    const { random } = this.#ledger;
    const isLarge = random.next() < 0.01;
    const key = random.next() < 0.5 ? uuidv7() : undefined;
    const record = this.#sending(isLarge ? 60_000 : 300, { key });
    const answer = await this.#sendRecord(client, record);
    if (!this.#ledger.take(record, answer)) return this.#leave(record);
    this.#expectReplay(record, answer, false);
    if (record.key !== undefined)
      this.#answeredKeyed = [record, ...this.#answeredKeyed].slice(0, repeatableMax);
  }

  async enqueue(client: Requester): Promise<void> {
    const { mailbox } = this;
    if (mailbox.waiting.size >= waitingMax) return this.settle(client);
    const token = `${this.device.deviceId}-mail-${this.#sequence++}`;
    const payload = { token, padding: 'y'.repeat(this.#random.integer(0, 300)) };
    const mail = mailbox.enqueuing(token, JSON.stringify(payload));
    const path = `${this.device.adminPath}/mail/order`;
    const answer = await client.admin<{ mail_id: string; mailbox_size: number }>('POST', path, payload);
    if (!this.#isTaken(answer, 201)) {
      if (this.#ledger.isRefusalFinal) mailbox.enqueued(mail, undefined);
      return;
    }
    mailbox.enqueued(mail, answer.body.mail_id);
    this.#findings.count('mail: queued, answered 201');
    this.#expectSize(answer.body.mailbox_size);
  }

  async settle(client: Requester): Promise<void> {
    const idle = this.mailbox.idle();
    // Mostly the head, as devices do.
    const mail = this.#random.next() < 0.7 ? idle[0] : this.#random.pick(idle);
    const verb = this.#random.pick<SettlementVerb>(['ack', 'ack', 'ack', 'reject', 'requeue']) ?? 'ack';
    if (mail === undefined) await this.#look(client);
    else await this.#settleBy(client, mail, verb);
  }

  /**
   * Checks after a crash: the mailbox against the model, then everything that was in doubt once more, as a device
   * would. A settlement must be answered 200 whether it had happened or not.
   */
  async resume(client: Requester): Promise<void> {
    this.#doubtedKeyed = [];
    await this.#resumeQueue(client);
    const listed = await this.#list(client);
    this.mailbox.check(listed);
    await this.#expectHead(client, listed);
    for (const mail of this.mailbox.unsettled()) {
      const verb = mail.open?.what as SettlementVerb;
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
    record.sender.late.add(record.sequence);
    const answers = await Promise.all([this.#sendRecord(client, record), this.#sendRecord(client, record)]);
    const statuses = answers.map(({ status }) => status);
    const stored = answers.filter((answer) => !isReplay(answer)).length;
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

  #sending(paddingMax: number, how: Partial<Pick<SentRecord, 'key' | 'isQueued'>>): SentRecord {
    const { random } = this.#ledger;
    return this.#ledger.records.sending({
      deviceId: this.device.deviceId,
      sequence: this.#sequence++,
      members: { padding: 'x'.repeat(random.integer(0, paddingMax)) },
      kind: random.next() < 0.7 ? 'datapoint' : 'message',
      ...how,
    });
  }

  /** A whole wake in one request: what waits in the device's own order, perhaps a settlement, and the next mail. */
  async #sync(client: Requester): Promise<void> {
    const waited = this.#queue.waiting.length;
    const more = this.#queue.isFull ? 0 : this.#random.integer(0, syncRecordsMax);
    for (const record of this.#queue.waiting) record.sender.late.add(record.sequence);
    for (let one = 0; one < more; one += 1) this.#queue.add(this.#sending(300, { isQueued: true }));
    const mail = this.#random.next() < 0.5 ? this.mailbox.idle()[0] : undefined;
    const verb = this.#random.pick<SettlementVerb>(['ack', 'ack', 'reject', 'requeue']) ?? 'ack';
    const settle = mail === undefined ? '' : `,"settle":[{"id":"${mail.id}","verb":"${verb}"}]`;
    if (mail !== undefined) this.mailbox.settling(mail, verb);
    const body = `{${this.#queue.members()}${settle}}`;
    const answer = await client.device(this.device, 'POST', '/v1/sync', body);
    if (!this.#isTaken(answer, 200)) {
      if (mail !== undefined && this.#ledger.isRefusalFinal) mail.open = undefined;
      return;
    }
    this.#findings.count(waited > 0 ? 'sync: answered 200, records again' : 'sync: answered 200');
    const found = syncAnswerOf(answer);
    this.#store(found);
    const [settled = { status: 0 }] = found.settled;
    if (mail !== undefined && this.#isTaken(settled, 200)) this.mailbox.settledBy(mail, verb);
    this.#expectSize(sizeOf(answer));
    const head = this.mailbox.waiting.values().next().value;
    this.#findings.expect(
      !this.#isKnown || found.mail[0]?.id === head?.id,
      () => `the next mail of ${this.device.deviceId} is ${found.mail[0]?.id}, not ${head?.id}`,
    );
  }

  /** D30: what is stored is answered as before, and stored no second time. */
  async #syncAgain(client: Requester): Promise<void> {
    const members = this.#queue.membersAnswered();
    if (members === undefined) return this.#sync(client);
    const answer = await client.device(this.device, 'POST', '/v1/sync', `{${members},"mail":{"max":0}}`);
    if (!this.#isTaken(answer, 200)) return;
    this.#expectStored(syncAnswerOf(answer), this.#queue.storedTo);
    this.#findings.count('answered sync repeated: answered as before');
  }

  /** A sync that was never answered, twice at once: its records end up stored exactly once, which the log tells. */
  async #resumeQueue(client: Requester): Promise<void> {
    const { waiting, storedTo } = this.#queue;
    if (waiting.length === 0) return;
    const last = storedTo + waiting.length;
    for (const { sender, sequence } of waiting) sender.late.add(sequence);
    const body = `{${this.#queue.members()},"mail":{"max":0}}`;
    const send = (): Promise<Answer> => client.device(this.device, 'POST', '/v1/sync', body);
    for (const answer of await Promise.all([send(), send()])) {
      if (!this.#isTaken(answer, 200)) continue;
      const found = syncAnswerOf(answer);
      this.#expectStored(found, last);
      this.#store(found);
    }
    this.#findings.count('repeated after a crash: unanswered sync');
  }

  #store(found: SyncAnswer): void {
    for (const record of this.#queue.stored(found.stored_to)) {
      record.state = 'answered';
      this.#findings.count(`${record.kind}: answered 201 in a sync`);
    }
  }

  #expectStored(found: SyncAnswer, to: number): void {
    const isStored = found.records.every(({ status }) => status === 201) && found.stored_to === to;
    this.#findings.expect(
      isStored,
      () => `a sync of ${this.device.deviceId} up to ${to} was answered ${JSON.stringify(found)}`,
    );
  }

  async #settleBy(
    client: Requester,
    mail: LedgerMail,
    verb: SettlementVerb,
    mayBeForgotten = false,
  ): Promise<void> {
    this.mailbox.settling(mail, verb);
    const answer = await client.device(this.device, 'PUT', `/v1/mailbox/${verb}/${mail.id}`);
    if (mayBeForgotten && answer.status === 404) return this.mailbox.forgotten(mail);
    if (!this.#isTaken(answer, 200)) {
      if (this.#ledger.isRefusalFinal) mail.open = undefined;
      return;
    }
    this.mailbox.settledBy(mail, verb);
    this.#findings.count(`mail: ${verb}, answered 200`);
    this.#expectSize(sizeOf(answer));
  }

  /** D15: the same verb again is 200, another is 409; this changes nothing. */
  async #settleAgain(client: Requester): Promise<void> {
    const before = this.#random.pick(this.mailbox.settled.slice(0, 10));
    if (before === undefined || !this.#isKnown) return this.settle(client);
    const verb = this.#random.pick<SettlementVerb>(['ack', 'reject']) ?? 'ack';
    const answer = await client.device(this.device, 'PUT', `/v1/mailbox/${verb}/${before.id}`);
    if (!this.#isTaken(answer, verb === before.verb ? 200 : 409)) return;
    this.#findings.count('mail: settled again, answered as before');
    this.#expectSize(sizeOf(answer));
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
    if (!this.#ledger.take(record, answer)) return this.#leave(record);
    this.#findings.count(`tried again under load: ${isReplay(answer) ? 'a replay' : 'stored only then'}`);
  }

  /** Nobody knows: it is sent again later. */
  #leave(record: SentRecord): void {
    const isOld = Date.now() - record.sentAtMs > repeatableMsMax;
    if (!this.#ledger.isRefusalFinal && record.key !== undefined && !isOld) this.#doubtedKeyed.push(record);
  }

  get #random(): Ledger['random'] {
    return this.#ledger.random;
  }

  get #findings(): Ledger['findings'] {
    return this.#ledger.findings;
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
    this.#expectSize(sizeOf(answer));
    this.#findings.expect(
      headerOf(answer.text, 'x-mail-id') === (head?.id ?? '') &&
        answer.text.endsWith(`\r\n\r\n${head?.payload ?? ''}`),
      () => `the head of ${this.device.deviceId} is ${answer.text}, not ${head?.id}`,
    );
  }

  async #list(client: Requester): Promise<ListedMail[]> {
    const path = `${this.device.adminPath}/mail?limit=1000`;
    return (await client.admin<{ items: ListedMail[] }>('GET', path)).body.items;
  }

  async #expectHead(client: Requester, [first, ...others]: ListedMail[]): Promise<void> {
    const answer = await client.device(this.device, 'HEAD', '/v1/mailbox/next');
    const size = first === undefined ? 0 : others.length + 1;
    this.#findings.expect(
      answer.status === (first ? 200 : 204) &&
        headerOf(answer.text, 'x-mail-id') === (first?.mail_id ?? '') &&
        sizeOf(answer) === size,
      () => `${this.device.deviceId} lists ${size} mails and answers ${answer.text}`,
    );
  }

  #sendRecord(client: Requester, { kind, payload, key }: SentRecord): Promise<Answer> {
    const route = kind === 'datapoint' ? 'datapoint' : 'msg';
    return client.device(this.device, 'POST', `/v1/${route}/any`, payload, key);
  }

  #expectReplay({ token, key }: SentRecord, answer: Answer, isExpected: boolean): void {
    this.#findings.expect(
      answer.status === 201 && isReplay(answer) === isExpected,
      () => `${token} with the key ${key} was answered ${answer.text}`,
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

  #isTaken(answer: { status: number }, status: number): boolean {
    return this.#ledger.isTaken(this.device.deviceId, answer, status);
  }
}

const isReplay = ({ text }: Answer): boolean => headerOf(text, 'idempotent-replayed') === 'true';
const sizeOf = ({ text }: Answer): number => Number(headerOf(text, 'x-mailbox-size'));
const syncAnswerOf = ({ text }: Answer): SyncAnswer => JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
