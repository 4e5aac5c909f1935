import { Client, type ClientConfig } from 'pg';
import type { Log } from '../../../core/telemetry/log.ts';
import { failureOf } from './database-failure.ts';

const retryMilliseconds = 500;
/** Who only listens never hears that the other end is gone without a word: so it is asked. */
const checkMilliseconds = 2_000;

export interface ListenerOptions {
  /** How it is connected to, as all connections of its database. */
  connection: ClientConfig;
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
  #check: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Settles after the first try to listen. */
  readonly tried: Promise<void>;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.tried = this.#connect();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#check);
    // A server that is frozen says no goodbye.
    const patience = setTimeout(
      () => this.#client?.connection.stream.destroy(),
      this.#options.timeoutMilliseconds,
    );
    await this.#client?.end().catch(() => {});
    clearTimeout(patience);
  }

  async #connect(): Promise<void> {
    const { connection, log, onPayload, onListening, channel } = this.#options;
    const client = new Client({ ...connection, application_name: 'fleetpost-listener' });
    this.#client = client;
    let hasEnded = false;
    const end = (error?: unknown): void => {
      if (hasEnded) return;
      hasEnded = true;
      clearTimeout(this.#check);
      client.end().catch(() => {});
      if (this.#isClosed) return;
      const code = error === undefined ? undefined : failureOf(error).code;
      log.warn({ code }, 'the connection that listens to the database ended');
      this.#retry = setTimeout(() => void this.#connect(), retryMilliseconds);
    };
    client.on('error', end);
    client.on('end', () => end());
    client.on('notification', ({ payload }) => onPayload(payload ?? ''));
    try {
      await client.connect();
      // A name of this program's own making.
      await client.query(`LISTEN "${channel}"`);
      onListening();
      const check = (): void => {
        if (hasEnded || this.#isClosed) return;
        this.#check = setTimeout(() => client.query('SELECT 1').then(check, end), checkMilliseconds);
      };
      check();
    } catch (error) {
      end(error);
    }
  }
}
