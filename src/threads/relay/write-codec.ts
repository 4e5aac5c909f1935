import { deviceKeyLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { Settle, SettleOutcome, SettleVerb } from '../../domain/mail/mail.ts';
import type { IngestOutcome } from '../../domain/records/record.ts';
import { readDevice } from '../../storage/lmdb/layout/keys.ts';
import type { Write, WriteAnswer } from '../../storage/lmdb/shard/write.ts';
import type { RingWriter } from './ring.ts';

/**
 * Encodes the writes that every request may make, and their answers, as frames of a ring: kind 1, call 4, then the body
 * of the kind. All other writes, and every refusal, go through the port.
 *
 * append: record. appendOnce: key 16, digest 32, record. settle: verb 1, device 18, mail id 16, and where it was
 * fetched count 4, first time 6. ingested: outcome 1. settled: result 1, mailbox size 4.
 */
const kinds = { append: 0, appendOnce: 1, settle: 2, ingested: 3, settled: 4 } as const;
const callAt = 1;
const bodyAt = 5;
const digestBytes = 32;
const idempotencyBytes = uuidBytesLength + digestBytes;
const fetchedAt = 1 + deviceKeyLength + uuidBytesLength;
const fetchedBytes = 4 + 6;

const verbs: readonly SettleVerb[] = ['ack', 'reject', 'requeue'];
const outcomes: readonly IngestOutcome[] = ['stored', 'replayed', 'key_reused', 'key_too_old', 'key_ahead'];
const results: readonly SettleOutcome['result'][] = ['settled', 'not_found', 'already_settled'];

function start(ring: RingWriter, kind: number, call: number, bodyBytes: number): number {
  const at = ring.reserve(bodyAt + bodyBytes);
  if (at < 0) return -1;
  ring.bytes[at] = kind;
  ring.bytes.writeUInt32LE(call, at + callAt);
  return at + bodyAt;
}

/** Returns false for a write that has no frame, and when the ring is full. */
export function encodeWrite(ring: RingWriter, call: number, write: Write): boolean {
  if (write.type === 'ingest') {
    const { idempotency, record } = write.params;
    if (idempotency === undefined) {
      const at = start(ring, kinds.append, call, record.length);
      if (at < 0) return false;
      ring.bytes.set(record, at);
      return true;
    }
    const at = start(ring, kinds.appendOnce, call, idempotencyBytes + record.length);
    if (at < 0) return false;
    ring.bytes.set(idempotency.key, at);
    ring.bytes.set(idempotency.digest, at + uuidBytesLength);
    ring.bytes.set(record, at + idempotencyBytes);
    return true;
  }
  if (write.type !== 'settle' || write.params.reply !== undefined) return false;
  const { verb, device, mailId, fetched } = write.params;
  const at = start(ring, kinds.settle, call, fetchedAt + (fetched === undefined ? 0 : fetchedBytes));
  if (at < 0) return false;
  ring.bytes[at] = verbs.indexOf(verb);
  ring.bytes.write(device, at + 1, 'latin1');
  ring.bytes.set(mailId, at + 1 + deviceKeyLength);
  if (fetched === undefined) return true;
  ring.bytes.writeUInt32LE(fetched.count, at + fetchedAt);
  ring.bytes.writeUIntLE(fetched.firstMs, at + fetchedAt + 4, 6);
  return true;
}

/** Returns false for an answer that has no frame, and when the ring is full. */
export function encodeAnswer(ring: RingWriter, call: number, answer: WriteAnswer): boolean {
  if (typeof answer === 'string') {
    const at = start(ring, kinds.ingested, call, 1);
    if (at < 0) return false;
    ring.bytes[at] = outcomes.indexOf(answer as IngestOutcome);
    return true;
  }
  const { result, mailboxSize } = answer as SettleOutcome;
  const at = start(ring, kinds.settled, call, 5);
  if (at < 0) return false;
  ring.bytes[at] = results.indexOf(result);
  ring.bytes.writeUInt32LE(mailboxSize, at + 1);
  return true;
}

export interface FrameReceiver {
  write(call: number, write: Write): void;
  answer(call: number, answer: WriteAnswer): void;
}

/** Decodes the frame at `at` into copies. */
export function takeFrame(bytes: Buffer, at: number, length: number, receiver: FrameReceiver): void {
  const call = bytes.readUInt32LE(at + callAt);
  const body = at + bodyAt;
  const end = at + length;
  const kind = bytes.readUInt8(at);
  if (kind >= kinds.ingested) receiver.answer(call, takeAnswer(bytes, body, kind));
  else receiver.write(call, takeWrite(bytes, body, end, kind));
}

function takeWrite(bytes: Buffer, body: number, end: number, kind: number): Write {
  if (kind === kinds.settle) {
    const device = readDevice(bytes, body + 1);
    const mailId = Buffer.from(bytes.subarray(body + 1 + deviceKeyLength, body + fetchedAt));
    const params: Settle = { device, mailId, verb: verbs[bytes.readUInt8(body)] ?? 'ack' };
    if (body + fetchedAt < end) {
      const count = bytes.readUInt32LE(body + fetchedAt);
      params.fetched = { count, firstMs: bytes.readUIntLE(body + fetchedAt + 4, 6) };
    }
    return { type: 'settle', params };
  }
  const copy = Buffer.from(bytes.subarray(body, end));
  if (kind === kinds.append) {
    return { type: 'ingest', params: { device: readDevice(copy, 0), record: copy } };
  }
  const record = copy.subarray(idempotencyBytes);
  const idempotency = {
    key: copy.subarray(0, uuidBytesLength),
    digest: copy.subarray(uuidBytesLength, idempotencyBytes),
  };
  return { type: 'ingest', params: { device: readDevice(record, 0), record, idempotency } };
}

function takeAnswer(bytes: Buffer, body: number, kind: number): WriteAnswer {
  if (kind === kinds.ingested) return outcomes[bytes.readUInt8(body)] ?? 'stored';
  const result = results[bytes.readUInt8(body)] ?? 'not_found';
  return { result, mailboxSize: bytes.readUInt32LE(body + 1) };
}
