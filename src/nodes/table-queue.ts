import { SingleFlight } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import type { Listener } from '../storage/postgres/connection/listener.ts';

/** Maximum delay when a notification is lost. */
const pollMilliseconds = 1_000;

export interface TableQueueOptions {
  database: Database;
  channel: string;
  log: Log;
  /** Handles all pending rows. Errors are logged, and the next poll retries. */
  poll(): Promise<void>;
}

/** Polls a table that other nodes write to: on each notification, and once a second in any case; one poll at a time. */
export class TableQueue {
  readonly #options: TableQueueOptions;
  readonly #listener: Listener;
  readonly #timer: NodeJS.Timeout;
  readonly #polling = new SingleFlight(
    () => this.#run(),
    () => this.#isRequested && !this.#isClosed,
  );
  #isRequested = false;
  #isClosed = false;

  constructor(options: TableQueueOptions) {
    this.#options = options;
    const { database, channel } = options;
    const poll = (): void => this.poll();
    this.#listener = database.listen({ channel, onPayload: poll, onListening: poll });
    this.#timer = setInterval(poll, pollMilliseconds);
  }

  poll(): void {
    this.#isRequested = true;
    void this.#polling.run();
  }

  /** Settles when the last poll has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#polling.settled();
    await this.#listener.close();
  }

  async #run(): Promise<void> {
    while (this.#isRequested && !this.#isClosed) {
      this.#isRequested = false;
      try {
        await this.#options.poll();
      } catch (error) {
        this.#options.log.warn({ err: error }, 'polling a table of other nodes failed; retrying');
      }
    }
  }
}
