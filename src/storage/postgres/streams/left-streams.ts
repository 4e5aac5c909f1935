import { SingleFlight } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Database } from '../connection/database.ts';

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
