import { type ConfigOf, integer, type Key, text } from '../core/config/config-key.ts';

/** Storage engine for devices and everything else. */
export type StoreSetting =
  | { engine: 'lmdb' }
  /** One URL per database, as libpq reads it; the first database also holds everything that belongs to no device. */
  | { engine: 'postgres'; shards: readonly string[] };

const databasesMax = 256;

const store: Key<StoreSetting> = {
  type: 'object',
  default: { engine: 'lmdb' },
  description:
    'Storage engine: the data folder, or `{"engine":"postgres","shards":["postgres://…"]}` with one URL per database.',
  required: ['engine'],
  properties: {
    engine: { enum: ['lmdb', 'postgres'] },
    shards: {
      type: 'array',
      minItems: 1,
      maxItems: databasesMax,
      uniqueItems: true,
      items: { type: 'string', pattern: '^postgres(ql)?://', maxLength: 4096 },
    },
  },
  additionalProperties: false,
  if: { properties: { engine: { const: 'postgres' } } },
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema calls it so.
  then: { required: ['shards'] },
  else: { properties: { shards: false } },
};

/** Configuration of storage. */
export const storageKeys = {
  data: text('./data', 'Data folder. In a configuration file, relative to its folder.', { minLength: 1 }),
  store,
  databaseConnectionsMax: integer(
    { default: 4, minimum: 2, maximum: 64 },
    'Connections from each worker to each database of `store`, plus one that listens. Lower it to stay within the connection limit of the database.',
  ),
  databaseTimeoutMilliseconds: integer(
    { default: 5_000, minimum: 100, maximum: 60_000 },
    'Timeout for database queries of a request, including the wait for a connection. After it, the request gets 503 within a second. Raise it for a distant database.',
  ),
  mapBytesMax: integer(
    { default: 64 * 1024 ** 3, minimum: 16 * 1024 * 1024, maximum: 16_384 * 1024 ** 3 },
    'Maximum size of one shard on disk. Reserves address space, not disk; writes to a full shard get 503. Lower it where address space is limited.',
  ),
  diskFreeBytesMin: integer(
    { default: 64 * 1024 * 1024, minimum: 1024 * 1024, maximum: 1_024 * 1024 ** 3 },
    'Minimum free disk space. Below it, writes that add data get 503; below a quarter of it, all writes do; below four times as much, mail and devices do. Raise it where others write to the same disk.',
  ),
  commitDelayMilliseconds: integer(
    { default: 4, minimum: 0, maximum: 50 },
    'Minimum time between two commits of a busy shard, so that more writes share each; on PostgreSQL, how long a busy worker waits after one at most. Lower it for lower latency, raise it for fewer flushes; 0 never waits.',
  ),
  shardQueueMax: integer(
    { default: 10_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Maximum writes waiting for one shard. Further ones get 503. Raise it for bursts that may be answered late.',
  ),
  shardQueueBytesMax: integer(
    { default: 67_108_864, minimum: 1_048_576, maximum: 1_073_741_824, isReloadable: true },
    'Maximum payload bytes of the writes waiting for one shard. Further ones get 503.',
  ),
  clockJumpGraceSeconds: integer(
    { default: 86_400, minimum: 1, maximum: 2_592_000 },
    'Grace period after a forward clock jump, before idempotency keys expire by it; also how much downtime counts towards the age of mail and records. Raise it where a clock may be wrong for longer.',
  ),
};

export type StorageConfig = ConfigOf<typeof storageKeys>;

/** Masks passwords, for output of the configuration. */
export function withoutPasswords(store: StoreSetting): StoreSetting {
  if (store.engine === 'lmdb') return store;
  return { ...store, shards: store.shards.map(withoutPassword) };
}

/** Masks the password of an address. */
export function withoutPassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^:@/?]*):.*@/, '$1:***@').replace(/([?&]password=)[^&]*/g, '$1***');
}
