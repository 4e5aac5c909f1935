import { headerOf } from '../connection/client-connection.ts';
import type { MailClient, SentSettlement } from './mail-client.ts';
import type { Reading, ReadingSender } from './sender.ts';
import { shownBody, type World } from './world.ts';

/** A device's readings are numbered in one order for all of a run, which is as long as its queue lives. */
const queueName = 'simulated';

interface SyncItem {
  status: number;
}

/** An answer to a sync, as far as a simulated device looks at it. */
interface SyncAnswer {
  records: SyncItem[];
  settled: SyncItem[];
  stored_to?: number;
  mail?: { id: string }[];
}

/** What a request says and asks for. */
interface Wake {
  readings: readonly Reading[];
  settlement: SentSettlement | undefined;
  asksMail: boolean;
}

/** Sends all of a wake in one request (D29): what was measured, what became of a mail, and that the next one is wanted. */
export class SyncClient {
  readonly #world: World;
  readonly #sender: ReadingSender;
  readonly #mail: MailClient;

  constructor(world: World, sender: ReadingSender, mail: MailClient) {
    this.#world = world;
    this.#sender = sender;
    this.#mail = mail;
  }

  /** Says all that there is to say; false if there is nothing. */
  next(device: number): boolean {
    const world = this.#world;
    const { states } = world;
    const settlement = this.#mail.decided(device);
    const asksMail = this.#mail.asks(device, settlement !== undefined);
    const { readings, records } = this.#sender.run(device);
    const [first] = readings;
    if (first === undefined && settlement === undefined && !asksMail) return false;
    const parts = [`"mail":{"max":${asksMail ? 1 : 0}}`];
    if (first !== undefined)
      parts.push(`"queue":"${queueName}","seq":${first.number},"records":[${records.join()}]`);
    if (settlement !== undefined)
      parts.push(`"settle":[{"id":"${settlement.id}","verb":"${settlement.verb}"}]`);
    const mailDueMs = settlement !== undefined || asksMail ? states.mailDueMs[device] : undefined;
    const dueMs = Math.min(first?.dueMs ?? Number.POSITIVE_INFINITY, mailDueMs ?? Number.POSITIVE_INFINITY);
    const wake = { readings, settlement, asksMail };
    world.request(device, {
      route: 'sync',
      method: 'POST',
      path: '/v1/sync',
      body: `{${parts.join()}}`,
      dueMs: Math.max(dueMs, states.readyMs[device] ?? 0),
      onAnswer: (status, text) => this.#onAnswer(device, wake, status, text),
      onLater: (isDoubtful) => {
        this.#sender.later(readings);
        if (settlement !== undefined) this.#mail.unsettled(device, settlement, isDoubtful);
        if (asksMail) this.#mail.onAvailable(device);
      },
    });
    return true;
  }

  #onAnswer(device: number, { readings, settlement, asksMail }: Wake, status: number, text: string): void {
    if (status !== 200) {
      for (const reading of readings) this.#sender.answered(device, reading, status, text);
      if (settlement !== undefined) this.#mail.settled(device, settlement, status, text);
      this.#world.complain(`POST /v1/sync was answered ${status}: ${shownBody(text)}`);
      return;
    }
    const answer = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as SyncAnswer;
    this.#store(device, readings, answer);
    const [settled] = answer.settled;
    if (settlement !== undefined && settled !== undefined) {
      if (settled.status >= 500) this.#comeLater(device);
      else this.#mail.settled(device, settlement, settled.status, text);
    }
    const [mail] = answer.mail ?? [];
    if (mail !== undefined) this.#mail.take(device, mail.id);
    else if (!asksMail && headerOf(text, 'x-messages-available') === 'true') this.#mail.onHint(device);
  }

  /** What is behind `stored_to` was told to come later. */
  #store(device: number, readings: readonly Reading[], { records, stored_to = 0 }: SyncAnswer): void {
    const later = readings.filter(({ number }) => number > stored_to);
    for (const [index, reading] of readings.entries()) {
      if (reading.number > stored_to) break;
      const item = records[index] ?? { status: 0 };
      this.#sender.answered(device, reading, item.status, JSON.stringify(item));
    }
    if (later.length === 0) return;
    this.#sender.later(later);
    this.#comeLater(device);
  }

  #comeLater(device: number): void {
    this.#world.counts.refused += 1;
    this.#world.backOff(device);
  }
}
