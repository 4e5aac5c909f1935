import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { sentKind } from '../queue/trigger.ts';
import type { ParkedRun } from '../service.ts';
import { decodeRecord, type OutgoingMail } from './parcel.ts';

/** A mail that its mailbox did not take. */
export interface RefusedMail extends OutgoingMail {
  reason: 'mailbox_full' | 'device_not_found' | 'not_stored';
}

/** As it is kept: with the record itself, for the log may be trimmed meanwhile. */
export interface KeptParkedRun {
  number: number;
  record: StoredRecord;
  parkedAtMs: number;
  attempts: number;
  error: ParkedRun['error'];
  /** Of `mail_refused`: to be sent again under the same ordinals. */
  mails: readonly RefusedMail[];
}

export function recordOf(kept: KeptParkedRun): StoredRecord {
  return decodeRecord(kept.record);
}

export function describeParked({
  number,
  record,
  parkedAtMs,
  attempts,
  error,
  mails,
}: KeptParkedRun): ParkedRun {
  return {
    number,
    recordId: formatUuid(record.id),
    kind: sentKind(record),
    device: deviceIdOf(record.device),
    name: record.schema,
    payload: Buffer.from(record.payload).toString('utf8'),
    storedAtMs: record.storedAtMs,
    parkedAtMs,
    attempts,
    error,
    refused: mails.map(({ device, name, reason }) => ({ device: deviceIdOf(device), name, reason })),
  };
}
