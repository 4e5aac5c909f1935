import type { DeviceKey } from '../../../core/identity.ts';
import { uuidTimeMs } from '../../../core/uuid.ts';
import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { IngestOutcome } from '../../../domain/records/record.ts';
import { textOfBytes, viewOf } from '../connection/bytes.ts';
import type { Database, Row, Session } from '../connection/database.ts';
import { clockMs, databaseTimeMs } from '../connection/database-time.ts';
import { dropPartition, keyPartitions, makePartitions, partitionsOf } from '../schema/partitions.ts';

/** Kept a little longer than keys are accepted, so that a request that is just in time finds its answer. */
const graceMs = 60_000;
/** A key is remembered for up to one part longer than it must be: statements look at each part, so they are few. */
const partsPerWindow = 8;
const partMsMin = 60_000;
/** Parts that are made ahead of the time that needs them. */
const partsAhead = 2;

const forgotten = `SELECT number FROM value WHERE name = 'forgotten' LIMIT 1`;
const forget = `
  INSERT INTO value AS t (name, number) VALUES ('forgotten', $1)
  ON CONFLICT (name) DO UPDATE SET number = greatest(t.number, excluded.number)`;

/**
 * Makes room for the idempotency keys that may come, and forgets those that may not come again: to be done before
 * the first is taken, and every minute from then on, by any number of nodes.
 */
export async function keepKeys(database: Database, limits: IdempotencyLimits): Promise<void> {
  const nowMs = await databaseTimeMs(database);
  const windowMs = limits.idempotencyWindowSeconds * 1_000;
  const partMs = Math.max(partMsMin, Math.ceil(windowMs / partsPerWindow));
  const overMs = nowMs - windowMs - graceMs;
  const [row] = await database.query<{ number: number }>(forgotten);
  const fromMs = Math.max(overMs, (row?.number ?? -1) + 1);
  const toMs = nowMs + limits.idempotencySkewSeconds * 1_000 + partsAhead * partMs;
  await makePartitions(database, keyPartitions, { fromMs, toMs }, partMs);
  for (const part of await partitionsOf(database, keyPartitions)) {
    if (part.toMs > overMs) return;
    await dropPartition(database, keyPartitions, part, (transaction) => {
      transaction.query(forget, [part.toMs - 1]);
    });
  }
}

/** Of two who claim one key, the later one waits here for the commit of the other. All claim in order of keys. */
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
 * The idempotency keys of what devices send (D18): a batch takes those that are new in one statement, which is all
 * that most cost. So no row of the device is locked, and of two at once one is a replay even where there is no device.
 */
export class KeyClaims {
  #limits: IdempotencyLimits = { idempotencyWindowSeconds: 0, idempotencySkewSeconds: 0 };
  readonly #wanted = new Map<string, Wanted>();
  /** Those that this transaction took and that nobody was told of yet. */
  readonly #taken = new Set<string>();
  /** What the keys stand for that are known. */
  readonly #digests = new Map<string, Buffer>();

  want(scope: DeviceKey, key: Uint8Array, digest: Uint8Array, limits: IdempotencyLimits): void {
    this.#limits = limits;
    const text = textOfBytes(scope, key);
    if (!this.#wanted.has(text)) {
      this.#wanted.set(text, { key: viewOf(key), scope, digest: viewOf(digest) });
    }
  }

  async load(session: Session): Promise<void> {
    if (this.#wanted.size === 0) return;
    const wanted = [...this.#wanted.values()];
    const { idempotencyWindowSeconds, idempotencySkewSeconds } = this.#limits;
    const taken = await session.query<KeyRow>(claim, [
      wanted.map(({ key }) => key),
      wanted.map(({ scope }) => scope),
      wanted.map(({ digest }) => digest),
      wanted.map(({ key }) => uuidTimeMs(key)),
      idempotencyWindowSeconds * 1_000,
      idempotencySkewSeconds * 1_000,
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

  /** What becomes of a request with that key, `nowMs` by the clock of the database. */
  claim(scope: DeviceKey, key: Uint8Array, digest: Uint8Array, nowMs: number): IngestOutcome {
    const text = textOfBytes(scope, key);
    if (this.#taken.delete(text)) {
      this.#digests.set(text, viewOf(digest));
      return 'stored';
    }
    const before = this.#digests.get(text);
    if (before !== undefined) return before.equals(digest) ? 'replayed' : 'key_reused';
    // Neither taken nor known: it is out of the window, or was forgotten.
    return uuidTimeMs(key) > nowMs ? 'key_ahead' : 'key_too_old';
  }
}
