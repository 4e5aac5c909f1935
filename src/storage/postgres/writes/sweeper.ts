import { SingleFlight, sleep } from '../../../core/async.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Hold } from '../../../domain/hold.ts';
import type { Database } from '../connection/database.ts';
import { Lease } from '../schema/lease.ts';
import type { Writer } from './writer.ts';

const defaultIntervalMilliseconds = 1_000;
const leaseMilliseconds = 10_000;
/** Due mail is swept every second; everything else every minute. */
const sweepsPerFullSweep = 60;
/** Pause between two rounds of one sweep, so that a backlog never has the database for itself. */
const roundPauseMilliseconds = 3;

export interface SweeperOptions {
  database: Database;
  writer: Writer;
  /** Identifies this thread among all of all nodes. */
  holder: string;
  /** Interval between two sweeps. */
  intervalMilliseconds?: number | undefined;
  /** While it holds, delayed mail stays delayed. */
  hold: Hold;
  log: Log;
  /** Called every minute, beside what the writer sweeps: partitions, and retention of records. */
  onFullSweep(): Promise<void>;
}

/** Sweeps due and expired rows, on one thread of all nodes at a time. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #lease: Lease;
  readonly #timer: NodeJS.Timeout;
  #sweeps = 0;
  readonly #sweeping = new SingleFlight(() =>
    this.#sweep().catch((error: unknown) => this.#options.log.warn({ err: error }, 'sweep failed; retrying')),
  );
  #isClosing = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#lease = new Lease(options.database, 'sweep', options.holder, leaseMilliseconds);
    this.#timer = setInterval(
      () => void this.#sweeping.run(),
      options.intervalMilliseconds ?? defaultIntervalMilliseconds,
    );
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    await this.#sweeping.settled();
    await this.#lease.release().catch(() => {});
  }

  async #sweep(): Promise<void> {
    if (!(await this.#lease.take())) return;
    const isFull = this.#sweeps++ % sweepsPerFullSweep === 0;
    // Expiry goes on: a mail that is over must not reach its device, and stays a dead letter.
    await this.#rounds(this.#options.hold.isHeld ? 'expired' : 'due');
    if (!isFull) return;
    await this.#rounds('old');
    await this.#options.onFullSweep();
  }

  async #rounds(what: 'due' | 'expired' | 'old'): Promise<void> {
    while (!this.#isClosing && (await this.#options.writer.write('sweep', what))) {
      await sleep(roundPauseMilliseconds);
      if (!(await this.#lease.take())) return;
    }
  }
}
