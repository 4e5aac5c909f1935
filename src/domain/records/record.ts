import { type DeviceKey, deviceKeyLength } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { KeyRefusal } from '../idempotency.ts';

/** Kinds of records that devices send. */
export type IngestKind = 'datapoint' | 'message';
/**
 * Kinds of records in the log, in the order of their stored numbers: append new ones. `receipt`: an event of a mail
 * (D17), stored in the same transaction, with the mail's name as its schema. Its payload is mail-event.ts's JSON.
 * `reply`: what the device answered to a mail (D31), likewise; its payload is the answer.
 */
export const recordKinds = ['datapoint', 'message', 'receipt', 'reply'] as const;
export type RecordKind = (typeof recordKinds)[number];
/** Kinds of records with a schema of their own, which actions run for. */
export type RunKind = IngestKind | 'reply';

export interface Ingest {
  device: DeviceKey;
  kind: IngestKind;
  schema: string;
  payload: Uint8Array;
  /** When the device recorded it, by `Recorded-At` (D25). */
  recordedAtMs?: number;
  /** The key's 16 bytes, and SHA-256 of what must be identical when it repeats (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

export type IngestOutcome = 'stored' | 'replayed' | KeyRefusal;

/** A record as stored in the log. */
export interface StoredRecord {
  /** Position in the log of its shard. */
  position: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Buffer;
  /** When the device recorded it, where it said so (D25). */
  recordedAtMs?: number;
  /** The mail that a reply answers. */
  mailId?: Buffer;
  /** Wall-clock time. */
  storedAtMs: number;
  /** True if it came from another shard's log when the shard count was lowered. */
  isRelocated: boolean;
}

/** The result of one read of the log: at most one commit's records. */
export interface LogPage {
  records: StoredRecord[];
  /** The position to continue at; the requested one if nothing is stored there yet. */
  next: number;
  /** The data cannot be decoded; `next` is behind it. */
  damaged: boolean;
}

/** A part of a log, positions [from, to), and how to read one device's records of it. */
export interface DeviceSpan {
  from: number;
  to: number;
  isNewestFirst: boolean;
  /** Maximum records of a page. */
  recordsMax: number;
}

/** Records of one device, in the order asked for. */
export interface DevicePage {
  records: StoredRecord[];
  /**
   * Where to go on: the new `from` of the span, or, newest first, its new `to`. The other bound of the span if there
   * is no more. A page without records may have a next one.
   */
  next: number;
}

/** Overhead per record besides schema and payload: device 18, kind 1, schema length 1, payload length 3. */
export const recordHeaderBytes = deviceKeyLength + 1 + 1 + 3;

/** Further bytes of a record that has a device time. */
export const recordedAtBytes = 6;

/** Size of a record in the log. */
export function logRecordBytes({
  schema,
  payload,
  recordedAtMs,
  mailId,
}: Pick<Ingest, 'schema' | 'payload' | 'recordedAtMs'> & { mailId?: Uint8Array }): number {
  return (
    recordHeaderBytes +
    schema.length +
    payload.length +
    (recordedAtMs === undefined ? 0 : recordedAtBytes) +
    (mailId === undefined ? 0 : uuidBytesLength)
  );
}
