import { Packr } from 'msgpackr';

/** Plain maps without shared structures: a record can be read without any state but its own bytes. */
const packr = new Packr({ useRecords: false });

/** For records whose shape varies; hot records have a binary layout of their own. */
export function pack(value: unknown): Buffer {
  return packr.pack(value);
}

export function unpack(bytes: Uint8Array): unknown {
  return packr.unpack(bytes);
}
