import { fleetIdOf } from '../../../core/identity.ts';
import type { MarkedBroadcast } from '../../../domain/mail/broadcast.ts';
import type { ShardDedupe } from '../../../domain/mail/shard-mail.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Database } from '../connection/database.ts';
import type { BroadcastMarkRow } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';

/** Skips from each broadcast to the next one: reads no row twice, however many devices each has. */
const markedBroadcasts = `
  WITH RECURSIVE found AS (
    (SELECT broadcast, device FROM broadcast_mark WHERE broadcast > $1 ORDER BY broadcast, device LIMIT 1)
    UNION ALL
    SELECT t.* FROM found CROSS JOIN LATERAL (
      SELECT m.broadcast, m.device FROM broadcast_mark m WHERE m.broadcast > found.broadcast
      ORDER BY m.broadcast, m.device LIMIT 1
    ) AS t
  )
  SELECT broadcast, device FROM found LIMIT $2`;

/** A shard's memory of senders on PostgreSQL. */
export class PostgresDedupe implements ShardDedupe {
  readonly #database: Database;
  readonly #writer: Writer;

  constructor(database: Database, writer: Writer) {
    this.#database = database;
    this.#writer = writer;
  }

  prune(before: Uint8Array | undefined): Promise<number> {
    return this.#writer.write('pruneDedupeKeys', before);
  }

  async broadcasts(after: Uint8Array | undefined, limit: number): Promise<MarkedBroadcast[]> {
    const values = [after === undefined ? Buffer.alloc(0) : viewOf(after), limit];
    const rows = await this.#database.query<Pick<BroadcastMarkRow, 'broadcast' | 'device'>>(
      markedBroadcasts,
      values,
    );
    return rows.map(({ broadcast: id, device }) => ({ fleetId: fleetIdOf(device), id }));
  }

  forgetBroadcast(broadcast: Uint8Array): Promise<number> {
    return this.#writer.write('forgetBroadcast', broadcast);
  }
}
