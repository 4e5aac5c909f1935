import { ApiError } from '../../core/errors.ts';
import { type JsonObject, parseDeepJson } from '../../declarations/schemas/payload.ts';
import type { MailFront } from '../../domain/mail/mail.ts';
import { type QueueRange, queueNamePattern, queueNumberMax } from '../../domain/sync/device-queues.ts';
import { extentsOf } from './extents.ts';

const recordsMax = 500;
const settlementsMax = 64;
const mailsMax = 16;
const mailBytesMax = 65_536;

/**
 * Bytes that a record and a settlement count at least: what a device may send a second of the smallest then takes no
 * more of a thread than its requests may. A usual one has as many, and a settlement of a mail that is not there is looked
 * up.
 */
const recordBytesMin = 64;
const settlementBytesMin = 256;

/** A sync as sent (D29). Its items are not judged yet. */
export interface SyncBody {
  records: readonly unknown[];
  /** The bytes of each record's payload; empty if it has none. */
  payloadOf(index: number): Buffer;
  settlements: readonly unknown[];
  /** Likewise of each settlement's reply. */
  replyOf(index: number): Buffer;
  queue: QueueRange | undefined;
  mail: MailFront;
}

const membersOfSync = ['records', 'queue', 'seq', 'settle', 'mail'];
const membersOfMail = ['max', 'bytes'];

/**
 * Parses a sync. `bytes` must not change while it is used.
 * @throws ApiError invalid_json, invalid_body for a member of the request itself that is wrong.
 */
export function parseSync(bytes: Buffer): SyncBody {
  const body = knownMembers(parseDeepJson(bytes), 'The body', membersOfSync);
  const records = listOf(body, 'records', recordsMax);
  const settlements = listOf(body, 'settle', settlementsMax);
  const payloads = extentsOf(bytes, 'records', 'payload', records.length);
  let replies: Uint32Array | undefined;
  return {
    records,
    payloadOf: (index) => bytes.subarray(payloads[2 * index], payloads[2 * index + 1]),
    settlements,
    replyOf(index) {
      // Few settlements have one.
      replies ??= extentsOf(bytes, 'settle', 'reply', settlements.length);
      return bytes.subarray(replies[2 * index], replies[2 * index + 1]);
    },
    queue: queueOf(body, records.length),
    mail: mailOf(body),
  };
}

/** What its items count beyond its own bytes. */
export function bytesBeyond({ records, settlements }: SyncBody, bytes: number): number {
  return Math.max(0, records.length * recordBytesMin + settlements.length * settlementBytesMin - bytes);
}

const errors = new Map<string, ApiError>();

/**
 * The error for a body, or an item of it, that is not what the route takes. One for each text, of which there are few:
 * hundreds of items may be wrong in the same way.
 */
export function invalid(msg: string): ApiError {
  const known = errors.get(msg) ?? new ApiError('invalid_body', { msg });
  errors.set(msg, known);
  return known;
}

/**
 * The members of an object, all of which must be known: the names of others, which are the device's own text, are not
 * repeated. @throws ApiError invalid_body
 */
export function knownMembers(value: unknown, what: string, known: readonly string[]): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`${what} must be a JSON object.`);
  }
  for (const name in value) if (!known.includes(name)) throw invalid(`${what} has an unknown member.`);
  return value as JsonObject;
}

function listOf(body: JsonObject, name: string, itemsMax: number): readonly unknown[] {
  const { [name]: list = [] } = body;
  if (!Array.isArray(list)) throw invalid(`${name} must be a list.`);
  if (list.length > itemsMax) throw invalid(`${name} may have at most ${itemsMax} items.`);
  return list;
}

function queueOf({ queue: name, seq }: JsonObject, records: number): QueueRange | undefined {
  if (name === undefined && seq === undefined) return undefined;
  if (name === undefined || seq === undefined) throw invalid('queue and seq come together.');
  if (typeof name !== 'string' || !queueNamePattern.test(name)) {
    throw invalid('queue must be 1 to 16 of A-Z, a-z, 0-9, _ and -.');
  }
  if (!isWhole(seq) || seq < 1 || seq + records - 1 > queueNumberMax) {
    throw invalid(`seq must be a whole number from 1 on, and no record have one over ${queueNumberMax}.`);
  }
  return { name, seq };
}

function mailOf({ mail = {} }: JsonObject): MailFront {
  const { max = 1, bytes = mailBytesMax } = knownMembers(mail, 'mail', membersOfMail);
  if (!isWhole(max) || max < 0 || max > mailsMax) throw invalid(`mail.max must be 0 to ${mailsMax}.`);
  if (!isWhole(bytes) || bytes < 0 || bytes > mailBytesMax) {
    throw invalid(`mail.bytes must be 0 to ${mailBytesMax}.`);
  }
  return { mailsMax: max, bytesMax: bytes };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
