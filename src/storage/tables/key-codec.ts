import { deviceIdLength, deviceIdPattern, fleetIdLength, fleetIdPattern } from '../../core/identity.ts';
import { copyUuid, isUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { RowRange } from './table-store.ts';

/** A field of a key. Without `bytes` it takes all that is left, and so is the last one. */
export interface KeyField<T> {
  bytes?: number;
  encode(value: T): Buffer;
  /** @throws Error if it is not one. */
  decode(bytes: Buffer): T;
}

/** Text in Latin-1, whose order is that of its characters. */
export function textField(pattern: RegExp, bytes?: number): KeyField<string> {
  return {
    ...(bytes !== undefined && { bytes }),
    encode: (text) => Buffer.from(text, 'latin1'),
    decode: (read) => {
      const text = read.toString('latin1');
      if (!pattern.test(text)) throw new Error('not the text of a key');
      return text;
    },
  };
}

/** A natural number, highest byte first. */
export function numberField(bytes: number): KeyField<number> {
  return {
    bytes,
    encode: (number) => {
      const written = Buffer.alloc(bytes);
      written.writeUIntBE(number, 0, bytes);
      return written;
    },
    decode: (read) => read.readUIntBE(0, bytes),
  };
}

export const fleetIdField = textField(fleetIdPattern, fleetIdLength);
export const deviceIdField = textField(deviceIdPattern, deviceIdLength);
export const shardField = numberField(2);
export const positionField = numberField(6);

/** A UUIDv7: those of an earlier time come first. */
export const uuidField: KeyField<Buffer> = {
  bytes: uuidBytesLength,
  encode: (id) => id,
  decode: (read) => {
    if (!isUuid(read)) throw new Error('not a UUIDv7');
    return copyUuid(read);
  },
};

/** A UUIDv7 as text, in its canonical form. */
export const uuidTextField = textField(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  36,
);

/** The fields of a key, by their position. */
export type KeyTuple = readonly unknown[];

/** A whole key, or its first fields: what all keys of a fleet begin with, say. */
export type KeyPrefix<K extends KeyTuple> = K extends readonly [...infer Front, unknown]
  ? K | KeyPrefix<Front>
  : readonly [];

/** Keys of fields one behind the other, in the order of the first field, then of the second. */
export class KeyCodec<K extends KeyTuple> {
  readonly #fields: readonly KeyField<unknown>[];

  constructor(...fields: { readonly [I in keyof K]: KeyField<K[I]> }) {
    this.#fields = fields as readonly KeyField<unknown>[];
  }

  encode(key: KeyPrefix<K>): Buffer {
    const values: KeyTuple = key;
    return Buffer.concat(this.#fields.slice(0, values.length).map((field, at) => field.encode(values[at])));
  }

  /** @throws Error if it is not a key of these fields. */
  decode(bytes: Buffer): K {
    let at = 0;
    const key = this.#fields.map((field) => {
      const end = field.bytes === undefined ? bytes.length : at + field.bytes;
      const value = field.decode(bytes.subarray(at, end));
      at = end;
      return value;
    });
    if (at !== bytes.length) throw new Error('a key of another length');
    return key as unknown as K;
  }
}

/** All keys that begin with `prefix`. */
export function rangeUnder(prefix: Buffer): RowRange {
  // The least key behind them: one more than the prefix in its last byte that can be.
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last === -1) return { start: prefix };
  const end = Buffer.from(prefix.subarray(0, last + 1));
  end.writeUInt8(end.readUInt8(last) + 1, last);
  return { start: prefix, end };
}
