import type { DeviceKey } from '../../../core/identity.ts';
import { uuidTimeMs } from '../../../core/uuid.ts';
import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { IngestOutcome } from '../../../domain/records/record.ts';
import { textOfBytes, viewOf } from '../connection/bytes.ts';
import type { Database, Row, Session } from '../connection/database.ts';
import { clockMs, databaseTimeMs } from '../connection/database-time.ts';
import { dropPartition, keyPartitions, makePartitions, partitionsOf } from '../schema/partitions.ts';

/** Keys are retained a little longer than accepted, so that a request just in time finds its answer. */
const graceMs = 60_000;
/** A key is retained up to one partition longer than necessary: statements scan every partition, so there are few. */
const partsPerWindow = 8;
const partMsMin = 60_000;
/** Partitions created ahead of time. */
const partsAhead = 2;

const forgotten = `SELECT number FROM value WHERE name = 'forgotten' LIMIT 1`;
const forget = `
  INSERT INTO value AS t (name, number) VALUES ('forgotten', $1)
  ON CONFLICT (name) DO UPDATE SET number = greatest(t.number, excluded.number)`;

/**
 * Creates partitions for the idempotency keys to come, and drops expired ones: must run before the first key is
 * claimed, then every minute, on any number of nodes.
 */
export async function maintainKeyPartitions(database: Database, limits: IdempotencyLimits): Promise<void> {
  const nowMs = await databaseTimeMs(database);
  const windowMs = limits.idempotencyWindowSeconds * 1_000;
  const partMs = Math.max(partMsMin, Math.ceil(windowMs / partsPerWindow));
  const overMs = nowMs - windowMs - graceMs;
  const [row] = await database.query<{ number: number }>(forgotten);
  const fromMs = Math.max(overMs, (row?.number ?? -1) + 1);
  const toMs = nowMs + limits.settings.current.idempotencySkewSeconds * 1_000 + partsAhead * partMs;
  await makePartitions(database, keyPartitions, { fromMs, toMs }, partMs);
  for (const part of await partitionsOf(database, keyPartitions)) {
    if (part.toMs > overMs) return;
    await dropPartition(database, keyPartitions, part, (transaction) => {
      transaction.query(forget, [part.toMs - 1]);
    });
  }
}

/**
 * Claims keys. Of two concurrent claims of a key, the later one waits here for the commit of the other. All claim in
 * order of keys.
 */
const claim = `
  INSERT INTO idempotency (key, scope, digest, result)
  SELECT k.key, k.scope, k.digest, ''::bytea
  FROM unnest($1::bytea[], $2::text[], $3::bytea[], $4::bigint[]) AS k (key, scope, digest, time_ms),
    (SELECT ${clockMs} AS ms) AS now
  WHERE k.time_ms BETWEEN now.ms - $5::bigint AND now.ms + $6::bigint
    AND k.time_ms > coalesce((SELECT number FROM value WHERE name = 'forgotten'), 0)
  ORDER BY k.key, k.scope
  ON CONFLICT (key, scope) DO NOTHING
  RETURNING key, scope`;
const known = `
  SELECT t.key, t.scope, t.digest FROM unnest($1::bytea[], $2::text[]) AS k (key, scope)
  JOIN idempotency t ON t.key = k.key AND t.scope = k.scope`;

interface Wanted {
  key: Buffer;
  scope: DeviceKey;
  digest: Buffer;
}
type KeyRow = Row & { key: Buffer; scope: string };

/**
 * Idempotency keys of device requests (D18): a batch claims the new ones in one statement, which is usually all. So no
 * row of the device is locked, and of two concurrent requests one is a replay even without a device.
 */
export class KeyClaims {
  #limits: IdempotencyLimits | undefined;
  readonly #wanted = new Map<string, Wanted>();
  /** Keys claimed by this transaction and not yet returned by `claim`. */
  readonly #taken = new Set<string>();
  /** Digests of known keys. */
  readonly #digests = new Map<string, Buffer>();

  preload(scope: DeviceKey, key: Uint8Array, digest: Uint8Array, limits: IdempotencyLimits): void {
    this.#limits = limits;
    const text = textOfBytes(scope, key);
    if (!this.#wanted.has(text)) {
      this.#wanted.set(text, { key: viewOf(key), scope, digest: viewOf(digest) });
    }
  }

  async load(session: Session): Promise<void> {
    if (this.#limits === undefined) return;
    const wanted = [...this.#wanted.values()];
    const { idempotencyWindowSeconds, settings } = this.#limits;
    const taken = await session.query<KeyRow>(claim, [
      wanted.map(({ key }) => key),
      wanted.map(({ scope }) => scope),
      wanted.map(({ digest }) => digest),
      wanted.map(({ key }) => uuidTimeMs(key)),
      idempotencyWindowSeconds * 1_000,
      settings.current.idempotencySkewSeconds * 1_000,
    ]);
    for (const { scope, key } of taken) this.#taken.add(textOfBytes(scope, key));
    const others = [...this.#wanted].flatMap(([text, one]) => (this.#taken.has(text) ? [] : [one]));
    if (others.length === 0) return;
    const rows = await session.query<KeyRow & { digest: Buffer }>(known, [
      others.map(({ key }) => key),
      others.map(({ scope }) => scope),
    ]);
    for (const { scope, key, digest } of rows) this.#digests.set(textOfBytes(scope, key), digest);
  }

  /** Outcome of a request with that key, `nowMs` by the clock of the database. */
  claim(scope: DeviceKey, key: Uint8Array, digest: Uint8Array, nowMs: number): IngestOutcome {
    const text = textOfBytes(scope, key);
    if (this.#taken.delete(text)) {
      this.#digests.set(text, viewOf(digest));
      return 'stored';
    }
    const before = this.#digests.get(text);
    if (before !== undefined) return before.equals(digest) ? 'replayed' : 'key_reused';
    // Neither claimed nor known: out of the window, or expired.
    return uuidTimeMs(key) > nowMs ? 'key_ahead' : 'key_too_old';
  }
}
