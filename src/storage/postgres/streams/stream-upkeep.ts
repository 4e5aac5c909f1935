import { SingleFlight } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';
import { oneByOne } from '../schema/table.ts';

/** Mail accepted since the tail was `since`; a row without mail tells the tail alone. */
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
  // Null, like the rest, if only the tail has moved.
  sequence: number | null;
  mail_id: Buffer | null;
  name: string | null;
};

/** In the order of arrival at each device. @throws ApiError unavailable */
export function findNewMail(
  database: Database,
  devices: readonly DeviceKey[],
  tails: readonly number[],
): Promise<NewMail[]> {
  return database.query<NewMail>(newMail, [devices, tails]);
}

/** Maximum streams per statement. */
const streamsAtOnce = 1_000;
const removeStreams = `
  DELETE FROM stream s USING unnest($1::text[], $2::bytea[]) AS k (device, stream_id)
  WHERE s.device = k.device AND s.stream_id = k.stream_id`;

/**
 * Streams that ended but are still in the database, so that their devices count as connected. Each is retained until
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

  /** Retries failed removals; call it regularly. */
  remove(): void {
    void this.#removing.run();
  }

  /** Settles when no statement is in flight. */
  settled(): Promise<void> {
    return this.#removing.settled();
  }

  /** One statement at a time, for all streams that end meanwhile. */
  async #remove(): Promise<void> {
    // Batches streams that end in the same turn of the event loop.
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

/** How far back ends are read: longer than a transaction may take between its time and its commit. */
const lookbackMilliseconds = 10_000;

const ends = `
  SELECT device, what, at_ms FROM stream_end
  WHERE at_ms > ${clockMs} - $1 ORDER BY at_ms`;

/** An action that streams had to take, and when, by the clock of the database. */
type StreamEnd = { device: DeviceKey; what: string; at_ms: number };

/** Finds ends of streams, with or without a notification; reports each once. */
export class StreamEnds {
  readonly #database: Database;
  readonly #reported = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Ends not reported before. @throws ApiError unavailable */
  async poll(): Promise<StreamEnd[]> {
    const rows = await this.#database.query<StreamEnd>(ends, [lookbackMilliseconds]);
    const fresh = rows.filter(({ device, what, at_ms: atMs }) => {
      const key = `${atMs} ${what}${device}`;
      const isKnown = this.#reported.has(key);
      this.#reported.set(key, performance.now());
      return !isKnown;
    });
    const oldMs = performance.now() - 2 * lookbackMilliseconds;
    for (const [key, atMs] of this.#reported) if (atMs < oldMs) this.#reported.delete(key);
    return fresh;
  }
}
