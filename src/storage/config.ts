import { integer, type Key, reloadable, text, type ValuesOf } from '../core/config/config-key.ts';

/** Where devices and everything else are kept. */
export type StoreSetting =
  | { engine: 'lmdb' }
  /** A URL for each database, as libpq reads it; the first also has what is not a device's. */
  | { engine: 'postgres'; shards: readonly string[] };

const databasesMax = 256;

const store: Key<StoreSetting> = {
  type: 'object',
  default: { engine: 'lmdb' },
  description:
    'Where everything is kept: in the data folder, or `{"engine":"postgres","shards":["postgres://…"]}`, a URL for each database.',
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

/** Where and how everything is stored. */
export const storageKeys = {
  data: text('./data', 'The data folder.', { minLength: 1 }),
  store,
  databaseConnectionsMax: integer(
    4,
    2,
    64,
    'Connections of each worker to each database of `store`, besides one that listens. Lower it to stay within what the database allows.',
  ),
  databaseTimeoutMilliseconds: integer(
    5_000,
    100,
    60_000,
    'Timeout for what a request asks of a database of `store`, waiting for a connection included; then it is answered 503, within a second. Raise it for a database that is far away.',
  ),
  mapBytesMax: integer(
    64 * 1024 ** 3,
    16 * 1024 * 1024,
    16_384 * 1024 ** 3,
    'Largest size of one shard on disk. Address space is reserved, not disk; a full shard answers 503 to writes. Lower it where address space is limited.',
  ),
  diskFreeBytesMin: integer(
    64 * 1024 * 1024,
    1024 * 1024,
    1_024 * 1024 ** 3,
    'Free disk that is left alone: with less, writes that add records are answered 503; with a quarter, all writes. Raise it where others write to the same disk.',
  ),
  commitDelayMilliseconds: integer(
    4,
    0,
    50,
    'While a shard is busy, the least time from one commit to the next: more share each; 0 never waits. Lower it for answers sooner, raise it for fewer flushes.',
  ),
  shardQueueMax: reloadable(
    integer(
      10_000,
      1,
      1_000_000,
      'Writes that may wait for one shard; one more is answered 503. Raise it for bursts that may be answered late.',
    ),
  ),
  shardQueueBytesMax: reloadable(
    integer(
      67_108_864,
      1_048_576,
      1_073_741_824,
      'Payload bytes of the writes that wait for one shard; more are answered 503.',
    ),
  ),
  clockJumpGraceSeconds: integer(
    86_400,
    1,
    2_592_000,
    'How long a jump ahead of the clock must last before idempotency keys are forgotten by it, and how much of the time that the server was off counts for mail and the log. Raise it where a clock may be wrong for longer.',
  ),
};

export type StorageConfig = ValuesOf<typeof storageKeys>;

/** Without passwords, for whoever looks at the configuration. */
export function withoutPasswords(store: StoreSetting): StoreSetting {
  if (store.engine === 'lmdb') return store;
  return { ...store, shards: store.shards.map(withoutPassword) };
}

function withoutPassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^:@/?]*):.*@/, '$1:***@').replace(/([?&]password=)[^&]*/g, '$1***');
}
