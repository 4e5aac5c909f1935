import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { sentKind } from '../queue/trigger.ts';
import type { ActionDeadLetter } from '../service.ts';
import { decodeRecord, type OutgoingMail } from './outbox-entry.ts';

/** A mail that its mailbox refused. */
export interface RefusedMail extends OutgoingMail {
  reason: 'mailbox_full' | 'device_not_found' | 'not_stored';
}

/** A dead letter as stored. Includes the record itself, as the log may be trimmed meanwhile. */
export interface StoredActionDeadLetter {
  number: number;
  record: StoredRecord;
  failedAtMs: number;
  attempts: number;
  error: ActionDeadLetter['error'];
  /** With `mail_refused`: the mails to send again, under the same ordinals. */
  mails: readonly RefusedMail[];
}

export function recordOf(letter: StoredActionDeadLetter): StoredRecord {
  return decodeRecord(letter.record);
}

export function describeDeadLetter({
  number,
  record,
  failedAtMs,
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
    failedAtMs,
    attempts,
    error,
    refused: mails.map(({ device, name, reason }) => ({ device: deviceIdOf(device), name, reason })),
  };
}
