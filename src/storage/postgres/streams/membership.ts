import { randomBytes } from 'node:crypto';
import { Mutex } from '../../../core/async.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';

/** How long the streams of a node that has died are taken for open; it says three times as often that it lives. */
const leaseMilliseconds = 15_000;
const renewMilliseconds = leaseMilliseconds / 3;
/** Ends of streams are kept for nodes that could not ask for a while; whoever was away for longer looks at all. */
const endsKeptMilliseconds = 300_000;

const renew = `UPDATE node SET until_ms = ${clockMs} + $2 WHERE node = $1 RETURNING node`;
const enter = `INSERT INTO node (node, until_ms) SELECT $1, ${clockMs} + $2 ON CONFLICT DO NOTHING`;
const bury = `DELETE FROM node WHERE until_ms < ${clockMs}`;
const clear = 'DELETE FROM stream WHERE node NOT IN (SELECT node FROM node)';
const forgetEnds = `DELETE FROM stream_end WHERE at_ms < ${clockMs} - $1`;
const leave = ['DELETE FROM stream WHERE node = $1', 'DELETE FROM node WHERE node = $1'];

/** This thread as one of the nodes of a database: for as long as it says so, and some seconds longer. */
export class Membership {
  readonly node = randomBytes(9).toString('hex');
  readonly #database: Database;
  readonly #log: Log;
  readonly #onEntered: () => Promise<void>;
  readonly #timer: NodeJS.Timeout;
  readonly #renewals = new Mutex();
  /** Settles after the first try to enter. */
  readonly entered: Promise<void>;

  /** `onEntered`: for the first time, or after it was taken for dead: nothing is known of it then. */
  constructor(database: Database, log: Log, onEntered: () => Promise<void>) {
    this.#database = database;
    this.#log = log;
    this.#onEntered = onEntered;
    const renewNext = (): Promise<void> => this.#renewals.run(() => this.#renew());
    this.entered = renewNext();
    this.#timer = setInterval(() => void renewNext(), renewMilliseconds);
  }

  /** With all that it has written down of itself, as far as the database is there. */
  async leave(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewals.settled();
    for (const text of leave) await this.#database.query(text, [this.node]).catch(() => {});
  }

  /** Says that this node lives, and buries those that do not. */
  async #renew(): Promise<void> {
    try {
      const renewed = await this.#database.query(renew, [this.node, leaseMilliseconds]);
      if (renewed.length === 0) {
        await this.#database.query(enter, [this.node, leaseMilliseconds]);
        await this.#onEntered();
      }
      await this.#database.query(bury);
      await this.#database.query(clear);
      await this.#database.query(forgetEnds, [endsKeptMilliseconds]);
    } catch (error) {
      this.#log.warn({ err: error }, 'this node could not say that it lives; it will try again');
    }
  }
}
