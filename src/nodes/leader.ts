import { SingleFlight, sleep } from '../core/async.ts';
import { type Log, logFailure } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { Lease } from '../storage/postgres/schema/lease.ts';

/** Of the row in the table `lease`. */
export const leaderLease = 'jobs';
/** How long the jobs stand still when the node that has them dies. It says four times as often that it lives. */
const leaseMilliseconds = 10_000;
const renewMilliseconds = leaseMilliseconds / 4;
/** After they could not be begun. */
const retryMilliseconds = 5_000;

export interface LeaderOptions<Running> {
  database: Database;
  /** This node among all. */
  holder: string;
  /** Begins the jobs; `onLost` is called when they cannot go on here. */
  open(onLost: () => void): Promise<Running>;
  close(running: Running): Promise<void>;
  log: Log;
}

/**
 * What one node does for all: while it has the lease it runs here, and when it has lost it, or is not sure any more of
 * what is stored, it ends here as it would with the process, and begins anew where the lease is.
 */
export class Leader<Running> {
  readonly #options: LeaderOptions<Running>;
  readonly #lease: Lease;
  readonly #timer: NodeJS.Timeout;
  #running: Running | undefined;
  #hasLease = false;
  #isLost = false;
  readonly #turning = new SingleFlight(() => this.#toward());
  #isClosed = false;

  constructor(options: LeaderOptions<Running>) {
    this.#options = options;
    this.#lease = new Lease(options.database, leaderLease, options.holder, leaseMilliseconds);
    this.#timer = setInterval(() => void this.#renew(), renewMilliseconds);
  }

  /** Settles after the first try to have the lease, and where it was had, when the jobs run or could not be begun. */
  async start(): Promise<void> {
    await this.#renew();
    await this.#turning.settled();
  }

  /** Where the jobs are here. */
  get running(): Running | undefined {
    return this.#isLost ? undefined : this.#running;
  }

  /** Ends them, and lets another node have them at once. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#turning.settled();
    await this.#close();
    await this.#lease.release().catch(() => {});
  }

  async #renew(): Promise<void> {
    try {
      this.#hasLease = await this.#lease.take();
    } catch {
      // The database says so in the log. As long as nobody else has the lease it stays where it is.
      return;
    }
    this.#turn();
  }

  /** Brings what runs to what is to run; one at a time. */
  #turn(): void {
    if (!this.#isClosed) void this.#turning.run();
  }

  async #toward(): Promise<void> {
    const { open, log } = this.#options;
    if (this.#running !== undefined && (!this.#hasLease || this.#isLost)) await this.#close();
    if (!this.#hasLease || this.#running !== undefined || this.#isClosed) return;
    try {
      this.#isLost = false;
      this.#running = await open(() => {
        this.#isLost = true;
        this.#turn();
      });
      log.info('the jobs of all nodes run here');
    } catch (error) {
      logFailure(log, error, 'the jobs of all nodes could not be begun here');
      await sleep(retryMilliseconds);
    }
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    const { close, log } = this.#options;
    try {
      await close(running);
      log.info('the jobs of all nodes do not run here any more');
    } catch (error) {
      // What of it is not stored is done again where they are begun next.
      logFailure(log, error, 'the jobs of all nodes did not end here in order');
    }
  }
}
