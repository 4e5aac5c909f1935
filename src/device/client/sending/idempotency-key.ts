import { randomBytes } from 'node:crypto';

/** Mints a UUIDv7 of this time (D18). */
export function mintIdempotencyKey(timeMs: number): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(timeMs, 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const text = bytes.toString('hex');
  return [0, 8, 12, 16, 20].map((at, index) => text.slice(at, [8, 12, 16, 20, 32][index])).join('-');
}
