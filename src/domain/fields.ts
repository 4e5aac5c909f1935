/**
 * One field of a record that is kept. A record's fields are declared once, with those of its noun; each engine derives
 * from their kinds how it keeps them.
 */
export interface KeptField<V = unknown> {
  readonly kind: 'uuid' | 'word' | 'name' | 'text' | 'texts' | 'count' | 'time' | 'bytes';
  /** Largest value of a count, which stays at it; characters of a text at most. */
  readonly max: number;
  /** Values of a word; their order is stored. */
  readonly words: readonly string[];
  /** A time by the clock of the shard, which has jumps of its own on LMDB (shard-clock.ts). */
  readonly isShardTime: boolean;
  readonly isOptional: boolean;
  /** The migration of databases that it came with. */
  readonly since: number;
  /** The type of its values. */
  readonly values?: V;
}

export type Fields = Readonly<Record<string, KeptField>>;

/** A record with these fields. */
export type RecordOf<F extends Fields> = { [N in keyof F]: F[N] extends KeptField<infer V> ? V : never };

function of<V>(kind: KeptField['kind'], more: Partial<KeptField> = {}): KeptField<V> {
  return {
    kind,
    max: 0,
    words: [],
    isShardTime: false,
    isOptional: false,
    since: 1,
    ...more,
  } as KeptField<V>;
}

export const field = {
  /** A UUIDv7, 16 bytes. */
  uuid: of<Buffer>('uuid'),
  /** A name of a schema or of a mail. */
  name: of<string>('name'),
  /** A text that was checked where it came in; '' is none. An optional one is read as undefined then. */
  text: (max: number, since = 1): KeptField<string> => of('text', { max, since }),
  /** Several, for records in msgpack and for databases. */
  texts: of<string[]>('texts'),
  /** Any bytes. A record has one such field at most. */
  bytes: of<Buffer>('bytes'),
  /** Milliseconds since 1970 by the wall clock. */
  time: of<number>('time'),
  shardTime: of<number>('time', { isShardTime: true }),
  count: (max: number): KeptField<number> => of('count', { max }),
  word: <W extends string>(words: readonly W[]): KeptField<W> => of('word', { words }),
  optional: <V>(one: KeptField<V>, since = 1): KeptField<V | undefined> => ({
    ...one,
    isOptional: true,
    since,
  }),
};

/** Moves the shard's times of a record, as copies do between engines. */
export function shifted<R extends object>(fields: Fields, record: R, byMs: number): R {
  const moved = { ...record } as Record<string, unknown>;
  for (const [name, { isShardTime }] of Object.entries(fields)) {
    const timeMs = moved[name];
    if (isShardTime && typeof timeMs === 'number') moved[name] = timeMs + byMs;
  }
  return moved as R;
}

/**
 * The fields of a record that has others too. In code that runs often members go in front of a spread, here and where
 * it is called: an object to which they are added after one costs ten times as much (V8 makes a new class of it).
 */
export function picked<F extends Fields, R extends { readonly [N in keyof F]?: unknown }>(
  fields: F,
  record: R,
): { [N in keyof F & keyof R]: R[N] } {
  const found: Record<string, unknown> = {};
  for (const name in fields) found[name] = record[name];
  return found as { [N in keyof F & keyof R]: R[N] };
}
