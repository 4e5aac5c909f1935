import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { sentKind } from '../queue/trigger.ts';
import type { ActionDeadLetter } from '../service.ts';
import { decodeRecord, type OutgoingMail } from './parcel.ts';

/** A mail that its mailbox did not take. */
export interface RefusedMail extends OutgoingMail {
  reason: 'mailbox_full' | 'device_not_found' | 'not_stored';
}

/** As it is kept: with the record itself, for the log may be trimmed meanwhile. */
export interface StoredActionDeadLetter {
  number: number;
  record: StoredRecord;
  parkedAtMs: number;
  attempts: number;
  error: ActionDeadLetter['error'];
  /** Of `mail_refused`: to be sent again under the same ordinals. */
  mails: readonly RefusedMail[];
}

export function recordOf(kept: StoredActionDeadLetter): StoredRecord {
  return decodeRecord(kept.record);
}

export function describeDeadLetter({
  number,
  record,
  parkedAtMs,
  attempts,
  error,
  mails,
}: StoredActionDeadLetter): ActionDeadLetter {
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
