import { Client } from 'pg';
import type { Log } from '../core/log.ts';

const retryMilliseconds = 500;

export interface ListenerOptions {
  url: string;
  channel: string;
  timeoutMilliseconds: number;
  log: Log;
  onPayload(payload: string): void;
  /** It listens, for the first time or again: what was told meanwhile is lost. */
  onListening(): void;
}

/** A connection of its own that listens to one channel, for as long as it takes. */
export class Listener {
  readonly #options: ListenerOptions;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    void this.#connect();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#client?.end().catch(() => {});
  }

  async #connect(): Promise<void> {
    const { url, channel, timeoutMilliseconds, log, onPayload, onListening } = this.#options;
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: timeoutMilliseconds,
      query_timeout: timeoutMilliseconds,
      keepAlive: true,
      application_name: 'fleetpost-listener',
    });
    this.#client = client;
    let hasEnded = false;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      client.end().catch(() => {});
      if (this.#isClosed) return;
      log.warn('the connection that listens to the database ended');
      this.#retry = setTimeout(() => void this.#connect(), retryMilliseconds);
    };
    client.on('error', end);
    client.on('end', end);
    client.on('notification', ({ payload }) => onPayload(payload ?? ''));
    try {
      await client.connect();
      // A name of this program's own making.
      await client.query(`LISTEN "${channel}"`);
      onListening();
    } catch {
      end();
    }
  }
}
