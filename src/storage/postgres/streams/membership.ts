import { randomBytes } from 'node:crypto';
import { Mutex } from '../../../core/async.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { programVersion } from '../../../core/telemetry/version.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';

/** How long streams of a dead node count as open; a node sends heartbeats three times as often. */
const leaseMilliseconds = 15_000;
const renewMilliseconds = leaseMilliseconds / 3;
/**
 * Retention of stream ends, for nodes that could not poll for a while; a node away for longer checks all its streams.
 */
const endsRetentionMilliseconds = 300_000;

const renew = `UPDATE node SET until_ms = ${clockMs} + $2 WHERE node = $1 RETURNING node`;
const enter = `INSERT INTO node (node, until_ms, version) SELECT $1, ${clockMs} + $2, $3 ON CONFLICT DO NOTHING`;
const versions = `SELECT DISTINCT version FROM node WHERE until_ms > ${clockMs} ORDER BY version`;
const removeDead = `DELETE FROM node WHERE until_ms < ${clockMs}`;
const clear = 'DELETE FROM stream WHERE node NOT IN (SELECT node FROM node)';
const pruneEnds = `DELETE FROM stream_end WHERE at_ms < ${clockMs} - $1`;
const leave = ['DELETE FROM stream WHERE node = $1', 'DELETE FROM node WHERE node = $1'];

/** Versions of the program that the nodes of a database run now. @throws ApiError unavailable */
export async function versionsOfNodes(database: Database): Promise<string[]> {
  const rows = await database.query<{ version: string }>(versions);
  return rows.map(({ version }) => version);
}

/** Membership of this thread among the nodes of a database, by heartbeats with a timeout. */
export class Membership {
  readonly node = randomBytes(9).toString('hex');
  readonly #database: Database;
  readonly #log: Log;
  readonly #onEntered: () => Promise<void>;
  readonly #timer: NodeJS.Timeout;
  readonly #renewals = new Mutex();
  /** Settles after the first attempt to enter. */
  readonly entered: Promise<void>;

  /**
   * `onEntered` is called after entering for the first time, or again after being taken for dead: the database knows
   * nothing of this node then.
   */
  constructor(database: Database, log: Log, onEntered: () => Promise<void>) {
    this.#database = database;
    this.#log = log;
    this.#onEntered = onEntered;
    const renewNext = (): Promise<void> => this.#renewals.run(() => this.#renew());
    this.entered = renewNext();
    this.#timer = setInterval(() => void renewNext(), renewMilliseconds);
  }

  /** Removes this node and its streams, if the database is available. */
  async leave(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewals.settled();
    for (const text of leave) await this.#database.query(text, [this.node]).catch(() => {});
  }

  /** Sends a heartbeat, and removes dead nodes. */
  async #renew(): Promise<void> {
    try {
      const renewed = await this.#database.query(renew, [this.node, leaseMilliseconds]);
      if (renewed.length === 0) {
        await this.#database.query(enter, [this.node, leaseMilliseconds, programVersion()]);
        await this.#onEntered();
      }
      await this.#database.query(removeDead);
      await this.#database.query(clear);
      await this.#database.query(pruneEnds, [endsRetentionMilliseconds]);
    } catch (error) {
      this.#log.warn({ err: error }, 'heartbeat failed; retrying');
    }
  }
}
