import { copyUuid, uuidBytesLength } from '../core/uuid.ts';
import type { Mail } from './shard.ts';

/**
 * id 16, requeues 2, fetches 4, accepted 6, expires 6, first fetched 6 (0: never), name length 1, name,
 * payload. Times are Unix milliseconds.
 */
const requeuesAt = uuidBytesLength;
const fetchesAt = requeuesAt + 2;
const acceptedAt = fetchesAt + 4;
const expiresAt = acceptedAt + 6;
const firstFetchedAt = expiresAt + 6;
const nameAt = firstFetchedAt + 6;

export function encodeMail(mail: Mail): Buffer {
  const bytes = Buffer.allocUnsafe(nameAt + 1 + mail.name.length + mail.payload.length);
  bytes.set(mail.id, 0);
  bytes.writeUInt16BE(Math.min(mail.requeueCount, 0xffff), requeuesAt);
  bytes.writeUInt32BE(Math.min(mail.fetchCount, 0xffffffff), fetchesAt);
  bytes.writeUIntBE(mail.acceptedAtMs, acceptedAt, 6);
  bytes.writeUIntBE(mail.expiresAtMs, expiresAt, 6);
  bytes.writeUIntBE(mail.firstFetchedAtMs ?? 0, firstFetchedAt, 6);
  bytes.writeUInt8(mail.name.length, nameAt);
  bytes.write(mail.name, nameAt + 1, 'latin1');
  bytes.set(mail.payload, nameAt + 1 + mail.name.length);
  return bytes;
}

/** Copies id and payload, so that the mail outlives `bytes`. */
export function decodeMail(bytes: Buffer): Mail {
  const nameLength = bytes.readUInt8(nameAt);
  const payloadAt = nameAt + 1 + nameLength;
  return {
    id: copyUuid(bytes),
    name: bytes.toString('latin1', nameAt + 1, payloadAt),
    payload: Buffer.from(bytes.subarray(payloadAt, bytes.length)),
    requeueCount: bytes.readUInt16BE(requeuesAt),
    fetchCount: bytes.readUInt32BE(fetchesAt),
    acceptedAtMs: bytes.readUIntBE(acceptedAt, 6),
    expiresAtMs: bytes.readUIntBE(expiresAt, 6),
    firstFetchedAtMs: bytes.readUIntBE(firstFetchedAt, 6) || undefined,
  };
}
