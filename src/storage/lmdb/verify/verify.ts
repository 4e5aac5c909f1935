import { type DeviceKey, deviceKeyLength, fleetIdOf, isDeviceKey } from '../../../core/identity.ts';
import { isUuid, uuidBytesLength } from '../../../core/uuid.ts';
import { keyDigestBytes, senderMark } from '../../../domain/idempotency.ts';
import { isQueueList } from '../../../domain/sync/device-queues.ts';
import { isForgottenRecord } from '../../tables/idempotency-keys.ts';
import { isSeenRecord } from '../layout/activity-record.ts';
import { isDeviceRecord } from '../layout/device-record.ts';
import { keyOfDevice, readDevice, readSequence, sequenceBytes } from '../layout/keys.ts';
import { isClockRecord } from '../layout/shard-clock.ts';
import { countBatch, countOf } from '../log/log-batch.ts';
import { isReorderedUntilRecord } from '../log/log-times.ts';
import { isTrimRecord } from '../log/log-trim-state.ts';
import { DeviceIndexCheck } from './verify-devices.ts';
import { verifyBroadcast, verifyDedupeKeys, verifyDelayed, verifyEnded } from './verify-ended.ts';
import { LogIndexCheck } from './verify-log-index.ts';
import { verifyMail, verifyReplaceable } from './verify-mail.ts';
import { MailBytesCheck } from './verify-mail-bytes.ts';
import { tableWalkOf, type Walked } from './walk.ts';

export interface ShardVerification extends Walked {
  /** True if the device belongs to this shard. */
  belongsHere(device: DeviceKey): boolean;
  hasFleet(fleetId: string): boolean;
}

/** Counts of a verified shard. */
export interface ShardCounts {
  devices: number;
  mails: number;
  logRecords: number;
  idempotencyKeys: number;
}

/** Verifies every record of every table of a stopped shard, also against each other. */
export function verifyShard(verification: ShardVerification): ShardCounts {
  const { tables, belongsHere, hasFleet, findings } = verification;
  const indexes = new DeviceIndexCheck(tables);
  const counts: ShardCounts = { devices: 0, mails: 0, logRecords: 0, idempotencyKeys: 0 };
  const walk = tableWalkOf(verification);
  const exists = (device: string): boolean =>
    isDeviceKey(device) && tables.get('devices')?.get(keyOfDevice(device)) !== undefined;

  walk('devices', (key, value) => {
    counts.devices += 1;
    const device = key.toString('latin1');
    if (!isDeviceKey(device)) return 'this is not the key of a device';
    if (!isDeviceRecord(value)) return 'the record does not decode';
    if (!belongsHere(device)) return 'the device belongs in another shard';
    const missing = indexes.check(device, value);
    if (missing !== undefined) return missing;
    return hasFleet(fleetIdOf(device)) ? undefined : 'its fleet does not exist';
  });
  indexes.walk(walk);
  for (const fleetId of indexes.uncounted)
    findings.add(`counts: the devices of fleet ${fleetId} are not counted`);
  verifyDedupeKeys(walk, belongsHere);
  verifyBroadcast(walk, belongsHere);
  walk('activity', (key, value) => {
    if (!isSeenRecord(value)) return 'the record does not decode';
    return exists(key.toString('latin1')) ? undefined : 'its device does not exist';
  });
  walk('queues', (key, value) => {
    if (!isQueueList(value)) return 'the record does not decode';
    return exists(key.toString('latin1')) ? undefined : 'its device does not exist';
  });
  const mailBytes = new MailBytesCheck();
  counts.mails = verifyMail(tables, walk, exists, findings, mailBytes);
  verifyDelayed(tables, walk, exists, mailBytes);
  mailBytes.walk(walk, findings);
  verifyReplaceable(tables, walk, exists);
  verifyEnded(tables, walk, belongsHere);
  walk('idempotency', (key, value) => {
    counts.idempotencyKeys += 1;
    if (!isKeyRecord(key, value)) return 'the record does not decode';
    const device = readDevice(key, uuidBytesLength);
    if (!isDeviceKey(device)) return 'the record does not decode';
    return belongsHere(device) ? undefined : 'its device belongs in another shard';
  });
  walk('times', (key, value) =>
    isForgottenRecord(key, value) ||
    isReorderedUntilRecord(key, value) ||
    isClockRecord(key, value) ||
    isTrimRecord(key, value)
      ? undefined
      : 'the record does not decode',
  );
  const index = new LogIndexCheck(tables);
  index.walk(walk);
  let end = 0;
  walk('log', (key, value) => {
    if (key.length !== sequenceBytes) return 'this is not the key of a batch';
    const position = readSequence(key, 0);
    const overlaps = position < end;
    const count = countBatch(value);
    counts.logRecords += count ?? 0;
    end = position + (count === undefined ? 1 : countOf(value));
    if (count === undefined) return 'the batch does not decode';
    if (overlaps) return 'the batch begins before the one in front of it ends';
    return index.covers(position, value) ? undefined : 'a record of it is not in the index of the log';
  });
  return counts;
}

/** A device's own key, or one of its mail senders, with the mail's id. */
function isKeyRecord(key: Buffer, value: Buffer): boolean {
  const deviceEnd = uuidBytesLength + deviceKeyLength;
  if (!isUuid(key)) return false;
  if (key.length === deviceEnd) return value.length === keyDigestBytes;
  const isSender = key.toString('latin1', deviceEnd) === senderMark;
  return (
    isSender && value.length === keyDigestBytes + uuidBytesLength && isUuid(value.subarray(keyDigestBytes))
  );
}
