import { serverNow } from '../../server/clock.ts';

/** A UUIDv7 by the server's clock, which checks its age. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  const nowMs = Math.floor(serverNow());
  view.setUint32(0, Math.floor(nowMs / 65_536));
  view.setUint16(4, nowMs % 65_536);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
