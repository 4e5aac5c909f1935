import { Packr } from 'msgpackr';

/** Plain maps without shared structures: each record can be decoded by itself. */
const packr = new Packr({ useRecords: false });

/** For records of varying shape; hot records have their own binary layouts. */
export function pack(value: unknown): Buffer {
  return packr.pack(value);
}

export function unpack(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}

/** How the values of a table are stored. */
export interface ValueCodec<V> {
  encode(value: V): Buffer;
  /** @throws Error if it is not one. */
  decode(bytes: Buffer): V;
}

/** Values in msgpack. `isSound` tells whether what was read is one; it may throw. */
export function packed<V>(isSound: (read: Partial<V>) => boolean): ValueCodec<V> {
  return checked(pack, unpack, isSound);
}

/** Values in JSON, for those with members of any name: msgpack would rename one called `__proto__`. */
export function json<V>(isSound: (read: Partial<V>) => boolean): ValueCodec<V> {
  const encode = (value: V): Buffer => Buffer.from(JSON.stringify(value));
  return checked(encode, (bytes) => JSON.parse(bytes.toString('utf8')), isSound);
}

/** For tables whose keys say it all. */
export const nothing: ValueCodec<undefined> = {
  encode: () => Buffer.alloc(0),
  decode: (bytes) => {
    if (bytes.length > 0) throw new Error('not an empty value');
    return undefined;
  },
};

/** Values of so many bytes. */
export function fixedBytes(length: number): ValueCodec<Buffer> {
  return checked(
    (bytes) => bytes,
    (bytes) => bytes,
    (read) => read.length === length,
  );
}

function checked<V>(
  encode: (value: V) => Buffer,
  decode: (bytes: Buffer) => unknown,
  isSound: (read: Partial<V>) => boolean,
): ValueCodec<V> {
  return {
    encode,
    decode: (bytes) => {
      const read = decode(bytes) as Partial<V>;
      if (!isSound(read)) throw new Error('not a value of its table');
      return read as V;
    },
  };
}
