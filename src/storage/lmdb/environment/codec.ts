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
