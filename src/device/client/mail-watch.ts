import type { IncomingMessage } from 'node:http';
import { StringDecoder } from 'node:string_decoder';
import { payloadBytesMax } from './answer.ts';
import { bodyOf, type Connection } from './connection.ts';
import type { ServerLink } from './link.ts';
import { backoffSeconds } from './pace.ts';
import { UnreachableError } from './trust.ts';

const streamFailuresMax = 3;

/**
 * Says when there may be mail: by the event stream, and while that fails by looking at the mailbox now and then. An event
 * is a hint, and the mailbox the truth.
 */
export class MailWatch {
  readonly #link: ServerLink;
  /** For streams. */
  readonly #streams: Connection;
  readonly #mailbox: Connection;
  #againSeconds = 5;
  #failures = 0;
  #unreachable = 0;
  #wasOpen = false;
  #streamAgainAtMs = 0;

  /** mailbox: the connection that the mailbox is looked at by. */
  constructor(link: ServerLink, mailbox: Connection) {
    this.#link = link;
    this.#mailbox = mailbox;
    this.#streams = link.connect();
  }

  /** Works until the device is closed. mailWaits: called again only when it has resolved. */
  async run(mailWaits: () => Promise<void>): Promise<void> {
    while (!this.#link.isClosing) {
      try {
        if (this.#failures < streamFailuresMax || performance.now() >= this.#streamAgainAtMs) {
          await this.#listen(mailWaits);
          this.#wasOpen = false;
          await this.#link.pause(this.#againSeconds);
        } else await this.#poll(mailWaits);
      } catch (error) {
        await this.#fail(error);
      }
    }
  }

  close(): void {
    this.#streams.close();
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#link.isClosing) return;
    // A server that is away is no reason to give up streams: looking at the mailbox would fail as well.
    if (error instanceof UnreachableError) {
      this.#unreachable += 1;
      return this.#link.waitAfter(error, this.#unreachable);
    }
    this.#unreachable = 0;
    if (this.#wasOpen) {
      // All devices of a server lose it at the same moment.
      this.#wasOpen = false;
      return this.#link.pause(this.#againSeconds);
    }
    this.#failures += 1;
    const { retrySecondsMax, streamAgainSeconds } = this.#link.pace;
    if (this.#failures >= streamFailuresMax && performance.now() >= this.#streamAgainAtMs) {
      this.#streamAgainAtMs = performance.now() + streamAgainSeconds * 1_000;
    }
    if (error instanceof RefusedStreamError) await this.#link.pause(error.seconds);
    await this.#link.pause(backoffSeconds(this.#failures, retrySecondsMax));
  }

  async #poll(mailWaits: () => Promise<void>): Promise<void> {
    const { pollSecondsMin, pollSecondsMax } = this.#link.pace;
    let seconds = pollSecondsMin;
    while (!this.#link.isClosing && performance.now() < this.#streamAgainAtMs) {
      await this.#link.mailHinted.wait(seconds, this.#link.closing);
      if (this.#link.isClosing) return;
      const { status } = await this.#link.ask(this.#mailbox, 'HEAD', '/v1/mailbox/next');
      if (status === 200) await mailWaits();
      seconds = status === 200 ? pollSecondsMin : Math.min(pollSecondsMax, seconds * 1.5);
    }
  }

  /** Returns when the server has ended the stream. */
  async #listen(mailWaits: () => Promise<void>): Promise<void> {
    const headers = this.#link.headers({ Accept: 'text/event-stream' });
    const response = await this.#streams.stream('/v1/events', headers);
    try {
      const status = response.statusCode ?? 0;
      if (status !== 200) {
        const answer = { status, headers: response.headers, body: await bodyOf(response) };
        throw new RefusedStreamError(status, this.#link.reportError(answer, streamFailuresMax));
      }
      this.#link.hear({ status, headers: response.headers });
      for await (const { event, data } of eventsOf(response)) {
        // Drawn for each stream, so that not all devices come back at once (D20).
        if (event === 'retry') this.#againSeconds = Math.min(60, Number(data) / 1_000) || 5;
        else if (event === 'connected' || event === 'new_mail') {
          [this.#failures, this.#unreachable, this.#wasOpen] = [0, 0, true];
          this.#link.mailbox = sizeIn(data);
          if (this.#link.mailbox > 0) await mailWaits();
        }
      }
    } finally {
      response.destroy();
    }
  }
}

class RefusedStreamError extends Error {
  readonly seconds: number;

  constructor(status: number, seconds: number) {
    super(`no event stream: ${status}`);
    this.seconds = seconds;
  }
}

function sizeIn(data: string): number {
  try {
    return Number((JSON.parse(data) as { mailbox_size?: unknown }).mailbox_size ?? 1);
  } catch {
    return 1;
  }
}

/** Reads events line by line: each as soon as its data is there, and a pause to make as `retry`. */
async function* eventsOf(response: IncomingMessage): AsyncGenerator<{ event: string; data: string }> {
  const decoder = new StringDecoder('utf8');
  let [rest, event] = ['', ''];
  for await (const part of response as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.write(part)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > payloadBytesMax) throw new Error('a line of the event stream is too long');
    for (const line of lines) {
      const [, field = '', value = ''] = /^(\w+): ?(.*?)\r?$/.exec(line) ?? [];
      if (field === 'event') event = value;
      else if (field === 'retry') yield { event: 'retry', data: value };
      else if (field === 'data') yield { event, data: value };
    }
  }
}
