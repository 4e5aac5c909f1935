import { type DeviceKey, deviceKeyLength } from '../../core/identity.ts';
import type { KeyRefusal } from '../idempotency.ts';

/** What devices send. */
export type IngestKind = 'datapoint' | 'message';
/**
 * Of records in the log, in the order of the numbers that it keeps them by: what is new comes last. `receipt`: what
 * became of a mail (D17), stored with that, under the mail's name as its schema. Its payload is mail-event.ts's JSON.
 */
export const recordKinds = ['datapoint', 'message', 'receipt'] as const;
export type RecordKind = (typeof recordKinds)[number];

export interface Ingest {
  device: DeviceKey;
  kind: IngestKind;
  schema: string;
  payload: Uint8Array;
  /** Both or neither: the key's 16 bytes, and SHA-256 of what must be the same when it comes again (D18). */
  idempotency?: { key: Uint8Array; digest: Uint8Array };
}

export type IngestOutcome = 'stored' | 'replayed' | KeyRefusal;

/** A record as the log holds it. */
export interface StoredRecord {
  /** Its place in the log of its shard. */
  position: number;
  /** UUIDv7, 16 bytes. */
  id: Buffer;
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Buffer;
  /** By the wall clock. */
  storedAtMs: number;
  /** Whether it came from the log of another shard, which a lower number of shards has given up. */
  isRelocated: boolean;
}

/** What one look into the log answers: at most one of the commits that it was written in. */
export interface LogPage {
  records: StoredRecord[];
  /** Where to read on; the position asked for when nothing stands there yet. */
  next: number;
  /** There is something and it cannot be decoded: `next` is behind it. */
  damaged: boolean;
}

/** device 18, kind 1, schema length 1, payload length 3: what a record takes besides its schema and its payload. */
export const recordHeaderBytes = deviceKeyLength + 1 + 1 + 3;

/** What a record takes in the log. */
export function logRecordBytes({ schema, payload }: { schema: string; payload: Uint8Array }): number {
  return recordHeaderBytes + schema.length + payload.length;
}
