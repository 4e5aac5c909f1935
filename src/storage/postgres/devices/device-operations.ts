import { isDeepStrictEqual } from 'node:util';
import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import type {
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  PutOutcome,
} from '../../../domain/devices/device.ts';
import { changedDevice, changeOfStreams } from '../../../domain/devices/device-change.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Session, Transaction } from '../connection/database.ts';
import { noteFetches } from '../mail/mailbox.ts';
import type { DeviceRow } from '../schema/tables.ts';
import type { ExclusiveOperations, Operations } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { deviceOfRow, rowOf } from './device-rows.ts';

/**
 * Who makes a device, makes its mailbox first: of several at once, one does, and the others wait for its commit. In
 * order of device, as all locks are.
 */
const makeMailboxes = `
  INSERT INTO mailbox AS t (device, size, head, tail, delayed, settled)
  SELECT k.device, 0, 1, 1, 0, ''::bytea FROM unnest($1::text[]) AS k (device) ORDER BY k.device COLLATE "C"`;
const makeNew = `${makeMailboxes} ON CONFLICT (device) DO NOTHING RETURNING device`;
/** Those that are there are locked on the way, and not changed. */
const makeOrLock = `
  ${makeMailboxes} ON CONFLICT (device) DO UPDATE SET size = t.size WHERE false RETURNING device`;
/** Rows that somebody is changing are left for the next time. An array of keys is looked up, never joined by a scan. */
const retire = `
  UPDATE device
  SET secret_digests = substring(secret_digests FROM 1 FOR length(secret_digests) - 32), old_secret_until_ms = NULL
  WHERE device = ANY (ARRAY(
    SELECT device FROM device WHERE old_secret_until_ms < $1
    ORDER BY old_secret_until_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
  RETURNING device`;

/** Writes of devices that are there, which share their transaction with others. */
export const deviceOperations: Operations = {
  changeDevice: {
    need: (work, { device }) => needDevice(work, device),
    apply: (work, { device, change }) => changeDevice(work, device, change) !== 'not_found',
  },
  changeDevices: {
    need(work, { devices }) {
      for (const device of devices) needDevice(work, device);
    },
    apply: (work, { devices, change }) => devices.map((device) => changeDevice(work, device, change)),
  },
  noteActivity: {
    need(work, given) {
      for (const { device, fetches } of given) {
        if (fetches.length > 0) work.mailboxes.want({ device });
        for (const { mailId } of fetches) {
          work.places.want(device, mailId);
          work.receipts.want({ device, mail_id: viewOf(mailId) });
        }
      }
    },
    apply(work, given) {
      for (const activity of given) {
        work.seen.note(activity);
        const { device, fetches } = activity;
        if (fetches.length > 0 && work.mailboxes.get({ device }) !== undefined) noteFetches(work, activity);
      }
      return undefined;
    },
  },
};

/** Writes that make or delete devices, each in a transaction of its own. */
export const exclusiveDeviceOperations: ExclusiveOperations = { createDevices, putDevices, deleteDevice };

/**
 * Drops old secrets whose time is over, so many at most, and answers how many. Behind everything else of its
 * transaction: it locks devices and no mailboxes, and waits for nobody.
 */
export async function retireSecrets(
  work: UnitOfWork,
  transaction: Transaction,
  max: number,
): Promise<number> {
  const retired = await transaction.query<{ device: DeviceKey }>(retire, [work.nowMs, max]);
  const devices = retired.map(({ device }) => device);
  // Those that were opened with the new secret go on.
  work.effects.recheckedStreams.push(...devices);
  return devices.length;
}

async function createDevices(
  work: UnitOfWork,
  transaction: Transaction,
  devices: readonly Device[],
): Promise<DeviceKey | undefined> {
  transaction.query('SAVEPOINT before');
  const made = await makeDevices(transaction, makeNew, devices);
  for (const { device } of devices) {
    // Taken by somebody else, or by one of the list before it.
    if (made.delete(device)) continue;
    transaction.query('ROLLBACK TO SAVEPOINT before');
    return device;
  }
  for (const device of devices) insertDevice(work, device);
  return undefined;
}

async function putDevices(
  work: UnitOfWork,
  transaction: Transaction,
  puts: readonly DevicePut[],
): Promise<PutOutcome[]> {
  const devices = puts.map(({ device }) => device);
  const made = await makeDevices(transaction, makeOrLock, devices);
  for (const { device } of devices) if (!made.has(device)) needDevice(work, device);
  await work.load(transaction);
  return puts.map(({ device, change }): PutOutcome => {
    if (made.delete(device.device)) {
      insertDevice(work, device);
      return 'created';
    }
    if (change === undefined) return 'exists';
    return changeDevice(work, device.device, change);
  });
}

/** With its mail, but not its receipts and dead letters. */
async function deleteDevice(work: UnitOfWork, transaction: Transaction, device: DeviceKey): Promise<boolean> {
  needDevice(work, device);
  await work.load(transaction);
  const row = deviceRow(work, device);
  if (row === undefined) return false;
  // Of these, `device` and `activity` are changed by some who do not hold the mailbox.
  for (const table of ['mail', 'delayed_mail', 'device', 'activity', 'mailbox']) {
    transaction.query(`DELETE FROM ${table} WHERE device = $1`, [device]);
  }
  for (const tag of row.tags) work.tags.remove({ fleet_id: fleetIdOf(device), tag, device });
  work.counts.add(fleetIdOf(device), { devices: -1, disabled: row.enabled ? 0 : -1 });
  work.effects.endedStreams.push(device);
  return true;
}

/** Answers those that were not there. */
async function makeDevices(
  session: Session,
  text: string,
  devices: readonly Device[],
): Promise<Set<DeviceKey>> {
  const keys = [...new Set(devices.map(({ device }) => device))];
  const made = await session.query<{ device: DeviceKey }>(text, [keys]);
  return new Set(made.map(({ device }) => device));
}

/** All but its mailbox, which is made. */
function insertDevice(work: UnitOfWork, given: Device): void {
  const { device, tags, enabled } = given;
  work.mailboxes.add({ device, size: 0, head: 1, tail: 1, delayed: 0, settled: Buffer.alloc(0) });
  work.devices.put(rowOf(given));
  for (const tag of tags) work.tags.put({ fleet_id: fleetIdOf(device), tag, device });
  work.activity.put({ device, last_seen_ms: null, address: null, bucket: 0 });
  work.counts.add(fleetIdOf(device), { devices: 1, disabled: enabled ? 0 : 1 });
}

function needDevice(work: UnitOfWork, device: DeviceKey): void {
  work.mailboxes.want({ device });
  work.devices.want({ device });
}

/** Undefined without a mailbox that is locked: a device that was made just now is not there for this transaction. */
function deviceRow(work: UnitOfWork, device: DeviceKey): DeviceRow | undefined {
  return work.mailboxes.get({ device }) && work.devices.get({ device });
}

function changeDevice(work: UnitOfWork, device: DeviceKey, change: DeviceChange): ChangeOutcome {
  const row = deviceRow(work, device);
  if (row === undefined) return 'not_found';
  const before = deviceOfRow(row);
  const after = changedDevice(before, change);
  if (change.tagsMax !== undefined && after.tags.length > change.tagsMax) return 'too_many_tags';
  const changed = rowOf(after);
  if (isDeepStrictEqual(changed, row)) return 'unchanged';
  const fleetId = fleetIdOf(device);
  for (const tag of row.tags)
    if (!changed.tags.includes(tag)) work.tags.remove({ fleet_id: fleetId, tag, device });
  for (const tag of changed.tags)
    if (!row.tags.includes(tag)) work.tags.put({ fleet_id: fleetId, tag, device });
  work.counts.add(fleetId, { devices: 0, disabled: Number(!after.enabled) - Number(!before.enabled) });
  work.devices.put(changed);
  const streams = changeOfStreams(before, after);
  if (streams === 'ended') work.effects.endedStreams.push(device);
  if (streams === 'rechecked') work.effects.recheckedStreams.push(device);
  return 'changed';
}
