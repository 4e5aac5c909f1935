import { readSequence, sequenceBytes } from './keys.ts';

/** IPv4 and IPv6, in network order. */
const addressLengths = [4, 16];

/** time in milliseconds 6; then, if known, the address: 4 or 16. */
export interface SeenRecord {
  lastSeenMs: number;
  address: Uint8Array | undefined;
}

export function encodeSeen(lastSeenMs: number, address: Uint8Array | undefined): Buffer {
  const length = address !== undefined && addressLengths.includes(address.length) ? address.length : 0;
  const bytes = Buffer.allocUnsafe(sequenceBytes + length);
  bytes.writeUIntBE(lastSeenMs, 0, sequenceBytes);
  if (length > 0) bytes.set(address as Uint8Array, sequenceBytes);
  return bytes;
}

/** Decodes a record, copying the address. */
export function decodeSeen(bytes: Buffer): SeenRecord {
  const address =
    bytes.length > sequenceBytes
      ? Uint8Array.prototype.slice.call(bytes, sequenceBytes, bytes.length)
      : undefined;
  return { lastSeenMs: readSequence(bytes, 0), address };
}

export function isSeenRecord(bytes: Buffer): boolean {
  return [0, ...addressLengths].some((length) => bytes.length === sequenceBytes + length);
}
