import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import type {
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  PutOutcome,
} from '../../../domain/devices/device.ts';
import { addedCounts, decideChange } from '../../../domain/devices/device-change.ts';
import { emptyMailbox } from '../../../domain/mail/mail-fields.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Session, Transaction } from '../connection/database.ts';
import { bytesOfRow } from '../mail/mail-bytes.ts';
import { noteFetches } from '../mail/mailbox.ts';
import type { DeviceRow } from '../schema/tables.ts';
import type { ExclusiveOperations, Operations } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { deviceOfRow, rowOf } from './device-rows.ts';

/**
 * Creating a device starts with its mailbox: of several concurrent attempts one succeeds, and the others wait for its
 * commit. In order of device, as all locks are.
 */
const makeMailboxes = `
  INSERT INTO mailbox AS t (device, size, head, tail, delayed, settled)
  SELECT k.device, 0, 1, 1, 0, ''::bytea FROM unnest($1::text[]) AS k (device) ORDER BY k.device COLLATE "C"`;
const makeNew = `${makeMailboxes} ON CONFLICT (device) DO NOTHING RETURNING device`;
/** Existing ones are locked and not changed. */
const makeOrLock = `
  ${makeMailboxes} ON CONFLICT (device) DO UPDATE SET size = t.size WHERE false RETURNING device`;
/** Rows being changed are left for the next run. An array of keys is looked up, never joined by a scan. */
const retire = `
  UPDATE device
  SET secret_digests = substring(secret_digests FROM 1 FOR length(secret_digests) - 32), old_secret_until_ms = NULL
  WHERE device = ANY (ARRAY(
    SELECT device FROM device WHERE old_secret_until_ms < $1
    ORDER BY old_secret_until_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
  RETURNING device`;

/** Each answers the bytes of the mail that goes. */
const removeMails = ['mail', 'delayed_mail'].map(
  (table) => `
  WITH removed AS (DELETE FROM ${table} WHERE device = $1 RETURNING ${bytesOfRow} AS bytes)
  SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM removed`,
);

/** Writes to existing devices, batched in shared transactions. */
export const deviceOperations: Operations = {
  changeDevice: {
    preload: (work, { device }) => preloadDevice(work, device),
    apply: (work, { device, change }) => changeDevice(work, device, change) !== 'not_found',
  },
  changeDevices: {
    preload(work, { devices }) {
      for (const device of devices) preloadDevice(work, device);
    },
    apply: (work, { devices, change }) => devices.map((device) => changeDevice(work, device, change)),
  },
  noteActivity: {
    preload(work, activities) {
      for (const { device, fetches } of activities) {
        if (fetches.length > 0) work.mailboxes.preload({ device });
        for (const { mailId } of fetches) {
          work.mailQueue.preload(device, mailId);
          work.replaceable.preload(device, mailId);
          work.receipts.preload({ device, mailId: viewOf(mailId) });
        }
      }
    },
    apply(work, activities) {
      for (const activity of activities) {
        work.seen.note(activity);
        const { device, fetches } = activity;
        if (fetches.length > 0 && work.mailboxes.get({ device }) !== undefined) noteFetches(work, activity);
      }
      return undefined;
    },
  },
};

/** Writes that create or delete devices, each in its own transaction. */
export const exclusiveDeviceOperations: ExclusiveOperations = { createDevices, putDevices, deleteDevice };

/**
 * Drops at most `max` expired old secrets and returns how many. Runs after everything else in its transaction: it locks
 * devices without mailboxes, and waits for nobody.
 */
export async function retireSecrets(
  work: UnitOfWork,
  transaction: Transaction,
  max: number,
): Promise<number> {
  const retired = await transaction.query<{ device: DeviceKey }>(retire, [work.nowMs, max]);
  const devices = retired.map(({ device }) => device);
  // Streams opened with the new secret continue.
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
    // Taken already, or a duplicate in the list.
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
  for (const { device } of devices) if (!made.has(device)) preloadDevice(work, device);
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

/** Deletes a device with its mail, but not its receipts and dead letters. */
async function deleteDevice(work: UnitOfWork, transaction: Transaction, device: DeviceKey): Promise<boolean> {
  preloadDevice(work, device);
  await work.load(transaction);
  const row = deviceRow(work, device);
  if (row === undefined) return false;
  // Rows of `device` and `activity` are also changed without a lock on the mailbox: `DatabaseTable.remove` would miss
  // one changed meanwhile.
  for (const text of removeMails) {
    const [removed] = await transaction.query<{ bytes: number }>(text, [device]);
    work.mailBytes.change(device, -(removed?.bytes ?? 0));
  }
  for (const table of ['replaceable', 'device', 'activity', 'device_queue', 'mailbox']) {
    transaction.query(`DELETE FROM ${table} WHERE device = $1`, [device]);
  }
  for (const tag of row.tags) work.tags.remove({ fleet_id: fleetIdOf(device), tag, device });
  work.counts.add(fleetIdOf(device), addedCounts(row, undefined));
  work.effects.endedStreams.push(device);
  return true;
}

/** Returns the devices that did not exist. */
async function makeDevices(
  session: Session,
  text: string,
  devices: readonly Device[],
): Promise<Set<DeviceKey>> {
  const keys = [...new Set(devices.map(({ device }) => device))];
  const made = await session.query<{ device: DeviceKey }>(text, [keys]);
  return new Set(made.map(({ device }) => device));
}

/** Inserts everything but the mailbox row, which exists already. */
function insertDevice(work: UnitOfWork, added: Device): void {
  const { device, tags } = added;
  work.mailboxes.add({ device, ...emptyMailbox(), delayed: 0 });
  work.devices.put(rowOf(added));
  for (const tag of tags) work.tags.put({ fleet_id: fleetIdOf(device), tag, device });
  work.activity.put({ device, last_seen_ms: null, address: null, bucket: 0 });
  work.counts.add(fleetIdOf(device), addedCounts(undefined, added));
}

function preloadDevice(work: UnitOfWork, device: DeviceKey): void {
  work.mailboxes.preload({ device });
  work.devices.preload({ device });
}

/** Undefined without a locked mailbox: a device created just now does not exist for this transaction. */
function deviceRow(work: UnitOfWork, device: DeviceKey): DeviceRow | undefined {
  return work.mailboxes.get({ device }) && work.devices.get({ device });
}

function changeDevice(work: UnitOfWork, device: DeviceKey, change: DeviceChange): ChangeOutcome {
  const row = deviceRow(work, device);
  if (row === undefined) return 'not_found';
  const before = deviceOfRow(row);
  const decision = decideChange(before, change);
  if (decision.result !== 'changed') return decision.result;
  const { after, streams } = decision;
  const fleetId = fleetIdOf(device);
  for (const tag of row.tags)
    if (!after.tags.includes(tag)) work.tags.remove({ fleet_id: fleetId, tag, device });
  for (const tag of after.tags)
    if (!row.tags.includes(tag)) work.tags.put({ fleet_id: fleetId, tag, device });
  work.counts.add(fleetId, addedCounts(before, after));
  work.devices.put(rowOf(after));
  if (streams !== undefined) work.effects[streams].push(device);
  return 'changed';
}
