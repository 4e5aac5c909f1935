import { integer, type Key } from '../core/config/config-key.ts';

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

export const storeKeys = {
  store,
  databaseConnectionsMax: integer(
    4,
    2,
    64,
    'Connections of each worker to each database of `store`, besides one that listens.',
  ),
  databaseTimeoutMilliseconds: integer(
    5_000,
    100,
    60_000,
    'Timeout for what a request asks of a database of `store`, waiting for a connection included; then it is answered 503, within a second.',
  ),
};

/** Without passwords, for whoever looks at the configuration. */
export function withoutPasswords(store: StoreSetting): StoreSetting {
  if (store.engine === 'lmdb') return store;
  return { ...store, shards: store.shards.map(withoutPassword) };
}

function withoutPassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^:@/?]*):.*@/, '$1:***@').replace(/([?&]password=)[^&]*/g, '$1***');
}
