import { SingleFlight } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import type { Listener } from '../storage/postgres/connection/listener.ts';

/** What a notification that is lost can cost. */
const pollMilliseconds = 1_000;

export interface TableQueueOptions {
  database: Database;
  channel: string;
  log: Log;
  /** Takes what there is. What it throws is logged, and tried again at the next look. */
  look(): Promise<void>;
}

/** Looks for what other nodes put into the database: when they tell, and each second in any case; one look at a time. */
export class TableQueue {
  readonly #options: TableQueueOptions;
  readonly #listener: Listener;
  readonly #timer: NodeJS.Timeout;
  readonly #looking = new SingleFlight(() => this.#run());
  #isAsked = false;
  #isClosed = false;

  constructor(options: TableQueueOptions) {
    this.#options = options;
    const { database, channel } = options;
    const look = (): void => this.look();
    this.#listener = database.listen({ channel, onPayload: look, onListening: look });
    this.#timer = setInterval(look, pollMilliseconds);
  }

  look(): void {
    this.#isAsked = true;
    void this.#looking.run();
  }

  /** Settles when the last look has come to its end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#looking.settled();
    await this.#listener.close();
  }

  async #run(): Promise<void> {
    while (this.#isAsked && !this.#isClosed) {
      this.#isAsked = false;
      try {
        await this.#options.look();
      } catch (error) {
        this.#options.log.warn(
          { err: error },
          'what other nodes say could not be read; it will be tried again',
        );
      }
    }
  }
}
