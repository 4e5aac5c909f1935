import { uuidBytesLength } from '../../core/uuid.ts';

/** A mail's id ends in the low 32 bits of its sequence in the mailbox, so that it is found by id without an index. */
const lowBits = 2 ** 32;
const lowAt = uuidBytesLength - 4;

export function writeSequence(id: Buffer, sequence: number): void {
  id.writeUInt32BE(sequence % lowBits, lowAt);
}

export function hasSequence(id: Uint8Array, sequence: number): boolean {
  return readLow(id) === sequence % lowBits;
}

/** The first sequence from `head` on that matches the id. */
export function sequenceFrom(head: number, id: Uint8Array): number {
  return head + ((((readLow(id) - head) % lowBits) + lowBits) % lowBits);
}

/** Reads byte by byte: creating a view would cost more than all the rest. */
function readLow(id: Uint8Array): number {
  const byte = (at: number): number => id[lowAt + at] ?? 0;
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}
