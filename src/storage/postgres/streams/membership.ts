import { randomBytes } from 'node:crypto';
import { Mutex, SingleFlight } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';
import { oneByOne } from '../schema/table.ts';

/** What a mailbox has taken in since its tail was `since`; a row without a mail tells the tail alone. */
const newMail = `
  SELECT k.device, m.tail, m.size, t.sequence, t.mail_id, t.name
  FROM unnest($1::text[], $2::bigint[]) AS k (device, since)
  JOIN mailbox m ON m.device = k.device AND m.tail > k.since
  LEFT JOIN LATERAL (
    SELECT device, sequence, mail_id, name FROM mail
    WHERE device = k.device AND sequence >= k.since AND requeue_count = 0 ${oneByOne}
  ) AS t ON true
  ORDER BY t.device, t.sequence`;

export type NewMail = {
  device: DeviceKey;
  tail: number;
  size: number;
  // Null, as the rest, where only the tail moved on.
  sequence: number | null;
  mail_id: Buffer | null;
  name: string | null;
};

/** In the order in which they came to each device. @throws ApiError unavailable */
export function findNewMail(
  database: Database,
  devices: readonly DeviceKey[],
  tails: readonly number[],
): Promise<NewMail[]> {
  return database.query<NewMail>(newMail, [devices, tails]);
}

/** Of one statement. */
const streamsAtOnce = 1_000;
const removeStreams = `
  DELETE FROM stream s USING unnest($1::text[], $2::bytea[]) AS k (device, stream_id)
  WHERE s.device = k.device AND s.stream_id = k.stream_id`;

/**
 * Streams that ended and are still written down: while they are, their devices count as connected. Each is kept until
 * the database has removed it, so at most as many as were open here.
 */
export class LeftStreams {
  readonly #database: Database;
  readonly #left = new Map<string, { device: DeviceKey; streamId: Buffer }>();
  readonly #removing = new SingleFlight(() => this.#remove());

  constructor(database: Database) {
    this.#database = database;
  }

  add(device: DeviceKey, streamId: Buffer): void {
    this.#left.set(streamId.toString('hex'), { device, streamId });
    this.remove();
  }

  /** To be called from time to time, for what the database did not do. */
  remove(): void {
    void this.#removing.run();
  }

  /** Settles when no statement is under way. */
  settled(): Promise<void> {
    return this.#removing.settled();
  }

  /** One statement at a time, for all that end meanwhile. */
  async #remove(): Promise<void> {
    // Streams that end in the same turn of the event loop go together.
    await Promise.resolve();
    while (this.#left.size > 0) {
      const part = [...this.#left].slice(0, streamsAtOnce);
      const devices = part.map(([, { device }]) => device);
      const ids = part.map(([, { streamId }]) => streamId);
      try {
        await this.#database.query(removeStreams, [devices, ids]);
      } catch {
        // The database has logged it.
        return;
      }
      for (const [id] of part) this.#left.delete(id);
    }
  }
}

/** Ends are looked for so far back: longer than a transaction may take between its time and its commit. */
const backMilliseconds = 10_000;

const ends = `
  SELECT device, what, at_ms FROM stream_end
  WHERE at_ms > ${clockMs} - $1 ORDER BY at_ms`;

/** What streams had to do, and when, by the clock of the database. */
type StreamEnd = { device: DeviceKey; what: string; at_ms: number };

/** What streams had to end for, whether a notification told of it or not: each is told once. */
export class StreamEnds {
  readonly #database: Database;
  readonly #told = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Those that were not told before. @throws ApiError unavailable */
  async look(): Promise<StreamEnd[]> {
    const rows = await this.#database.query<StreamEnd>(ends, [backMilliseconds]);
    const fresh = rows.filter(({ device, what, at_ms: atMs }) => {
      const key = `${atMs} ${what}${device}`;
      const isKnown = this.#told.has(key);
      this.#told.set(key, performance.now());
      return !isKnown;
    });
    const oldMs = performance.now() - 2 * backMilliseconds;
    for (const [key, atMs] of this.#told) if (atMs < oldMs) this.#told.delete(key);
    return fresh;
  }
}

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
