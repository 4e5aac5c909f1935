import { V7Generator } from 'uuidv7';

export const uuidBytesLength = 16;

/**
 * Ids cross threads, and a structured clone copies the whole buffer under a view: so every id has memory of its own,
 * never a slice of Node's pool.
 */
const generator = new V7Generator();

/** How far the clock may go back with ids still ascending; the generator's default. */
const rollbackMsMax = 10_000;

/** Generates 16 bytes for that time, ascending on this thread. */
export function generateUuid(timeMs = Date.now()): Buffer {
  return copyUuid(generator.generateOrResetCore(timeMs, rollbackMsMax).bytes);
}

/** Copies the first 16 bytes of a record that is about to be overwritten. */
export function copyUuid(bytes: Uint8Array): Buffer {
  const copy = Buffer.alloc(uuidBytesLength);
  copy.set(bytes.subarray(0, uuidBytesLength));
  return copy;
}

const hexOfByte: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, '0'),
);

/** Formats 36 lower-case characters with dashes. Byte by byte: Node's hex encoding costs twice as much. */
export function formatUuid(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < uuidBytesLength; i += 1) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += '-';
    text += hexOfByte[bytes[i] ?? 0];
  }
  return text;
}

const dashed = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const undashed = /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/i;

/** Parses a UUIDv7 of 36 or 32 characters in either case; undefined for anything else. */
export function parseUuid(text: string): Buffer | undefined {
  if (text.length === 36 ? !dashed.test(text) : !undashed.test(text)) return undefined;
  const bytes = Buffer.alloc(uuidBytesLength);
  bytes.write(text.length === 36 ? text.replaceAll('-', '') : text, 'hex');
  return bytes;
}

/** The Unix time in milliseconds of a UUIDv7 (RFC 9562, 5.7). */
export function uuidTimeMs(bytes: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, 6).readUIntBE(0, 6);
}

/** True if the first 16 bytes are a valid UUIDv7 (RFC 9562, 4.1 and 5.7). */
export function isUuid(bytes: Uint8Array): boolean {
  return ((bytes[6] ?? 0) & 0xf0) === 0x70 && ((bytes[8] ?? 0) & 0xc0) === 0x80;
}
