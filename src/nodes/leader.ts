import { SingleFlight, sleep } from '../core/async.ts';
import { type Log, logFailure } from '../core/telemetry/log.ts';
import type { Database } from '../storage/postgres/connection/database.ts';
import { Lease } from '../storage/postgres/schema/lease.ts';

/** Name of the row in the table `lease`. */
export const leaderLease = 'jobs';
/** Time without a leader when its node dies. It renews the lease four times as often. */
const leaseMilliseconds = 10_000;
const renewMilliseconds = leaseMilliseconds / 4;
/** Pause after a failed start. */
const retryMilliseconds = 5_000;

export interface LeaderOptions<Running> {
  database: Database;
  /** Identifies this node among all. */
  holder: string;
  /** Starts what the leader runs; `onLost` is called when that cannot continue here. */
  open(onLost: () => void): Promise<Running>;
  close(running: Running): Promise<void>;
  log: Log;
}

/**
 * Leader election: while this node has the lease, what must run once runs here. When it loses the lease, or is no
 * longer sure of what is stored, it stops as it would with the process, and the node with the lease starts anew.
 */
export class Leader<Running> {
  readonly #options: LeaderOptions<Running>;
  readonly #lease: Lease;
  readonly #timer: NodeJS.Timeout;
  #running: Running | undefined;
  #hasLease = false;
  #isLost = false;
  readonly #reconciling = new SingleFlight(() => this.#reconcile());
  readonly #stopping = new AbortController();

  constructor(options: LeaderOptions<Running>) {
    this.#options = options;
    this.#lease = new Lease(options.database, leaderLease, options.holder, leaseMilliseconds);
    this.#timer = setInterval(() => void this.#renew(), renewMilliseconds);
  }

  /** Settles after the first attempt to take the lease, and, if that succeeded, after the start or its failure. */
  async start(): Promise<void> {
    await this.#renew();
    await this.#reconciling.settled();
  }

  /** Defined on the leader only. */
  get running(): Running | undefined {
    return this.#isLost ? undefined : this.#running;
  }

  /** Stops, and releases the lease for another node. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    await this.#reconciling.settled();
    await this.#close();
    await this.#lease.release().catch(() => {});
  }

  async #renew(): Promise<void> {
    try {
      this.#hasLease = await this.#lease.take();
    } catch {
      // Logged by the database. As long as nobody else has the lease, this node stays the leader.
      return;
    }
    this.#reconcileSoon();
  }

  /** Starts or stops to match the lease; one at a time. */
  #reconcileSoon(): void {
    if (!this.#stopping.signal.aborted) void this.#reconciling.run();
  }

  async #reconcile(): Promise<void> {
    const { open, log } = this.#options;
    if (this.#running !== undefined && (!this.#hasLease || this.#isLost)) await this.#close();
    const isStopping = this.#stopping.signal.aborted;
    if (!this.#hasLease || this.#running !== undefined || isStopping) return;
    try {
      this.#isLost = false;
      this.#running = await open(() => {
        this.#isLost = true;
        this.#reconcileSoon();
      });
      log.info('this node is now the leader');
    } catch (error) {
      logFailure(log, error, 'starting as the leader failed; retrying');
      await sleep(retryMilliseconds, this.#stopping.signal);
    }
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    const { close, log } = this.#options;
    try {
      await close(running);
      log.info('this node is no longer the leader');
    } catch (error) {
      // Whatever is not stored is done again by the next leader.
      logFailure(log, error, 'stopping as the leader failed');
    }
  }
}
