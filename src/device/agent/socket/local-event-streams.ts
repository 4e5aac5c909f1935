import type { ServerResponse } from 'node:http';
import { AgentError } from '../agent-error.ts';

const silenceMsMax = 15_000;
const streamsMax = 16;
/** A reader that does not read is cut. */
const waitingBytesMax = 65_536;

/** The programs that listen on the socket. */
export class LocalEventStreams {
  /** Each with the timer of its keep-alive. */
  readonly #streams = new Map<ServerResponse, NodeJS.Timeout>();
  readonly #left: () => void;
  readonly #ticked: () => void;

  /** left: called when the last one has gone. ticked: called after each keep-alive. */
  constructor(left: () => void, ticked: () => void) {
    this.#left = left;
    this.#ticked = ticked;
  }

  /** Begins a stream. */
  open(response: ServerResponse): void {
    if (this.#streams.size >= streamsMax) {
      throw new AgentError(403, 'too_many_streams', `At most ${streamsMax} programs can listen at a time.`);
    }
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      Connection: 'close',
    });
    response.flushHeaders();
    const timer = setInterval(() => {
      this.send(response, 'keep_alive', String(Date.now()));
      this.#ticked();
    }, silenceMsMax);
    this.#streams.set(response, timer);
    response.on('close', () => {
      clearInterval(timer);
      if (this.#streams.delete(response) && this.#streams.size === 0) this.#left();
    });
  }

  /** data is JSON, and so has no line break. */
  send(response: ServerResponse, event: string, data?: string): void {
    if (response.writableLength > waitingBytesMax) {
      response.destroy();
      return;
    }
    this.#streams.get(response)?.refresh();
    response.write(`event: ${event}\n${data === undefined ? '' : `data: ${data}\n`}\n`);
  }

  sendAll(event: string, data?: string): void {
    for (const response of this.#streams.keys()) this.send(response, event, data);
  }

  get size(): number {
    return this.#streams.size;
  }

  close(): void {
    for (const response of this.#streams.keys()) response.end();
  }
}
