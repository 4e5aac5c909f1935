import { EventSource } from 'eventsource';
import { type Agent, fetch } from 'undici';
import { expect } from 'vitest';
import { oneConnection, type TestDevice } from './device.ts';

const patience = { timeout: 60_000, interval: 20 };

export interface Received {
  type: string;
  id: string;
  data: Record<string, unknown>;
  atMs: number;
}

const open: EventStream[] = [];

/** Called after each test that opens streams. */
export async function closeStreams(): Promise<void> {
  for (const stream of open.splice(0)) await stream.close();
}

/** A device's event stream as the `eventsource` package reads it, on a connection of its own. */
export class EventStream {
  readonly received: Received[] = [];
  readonly #source: EventSource;
  readonly #agent: Agent;
  #isOver = false;
  #status: number | undefined;

  /** A stream that reconnects goes on after it was cut, as the package does by itself. */
  constructor(device: TestDevice, reconnects = false) {
    this.#agent = oneConnection(device.server);
    this.#source = new EventSource(`${device.server.url}/v1/events`, {
      fetch: (url, { headers, signal }) =>
        fetch(url, { headers: { ...headers, ...device.credentials }, signal, dispatcher: this.#agent }),
    });
    for (const type of ['connected', 'new_mail', 'keep_alive', 'message']) {
      this.#source.addEventListener(type, ({ data, lastEventId }: MessageEvent) => {
        this.received.push({ type, id: lastEventId, data: JSON.parse(data), atMs: Date.now() });
      });
    }
    this.#source.addEventListener('error', ({ code }) => {
      this.#isOver = true;
      this.#status = code;
      if (!reconnects) this.#source.close();
    });
    open.push(this);
  }

  static async open(device: TestDevice): Promise<EventStream> {
    const stream = new EventStream(device);
    await stream.has('connected', 1);
    return stream;
  }

  /** The stream has ended, or was refused with `status`. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get status(): number | undefined {
    return this.#status;
  }

  of(type: string): Received[] {
    return this.received.filter((event) => event.type === type);
  }

  async has(type: string, count: number): Promise<Received[]> {
    await expect.poll(() => this.of(type).length, patience).toBeGreaterThanOrEqual(count);
    return this.of(type);
  }

  async close(): Promise<void> {
    this.#source.close();
    await this.#agent.destroy();
  }
}
