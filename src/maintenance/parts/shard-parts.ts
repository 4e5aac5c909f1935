import { OperatorError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import { descriptionOf } from '../../domain/devices/device-fields.ts';
import { bucketOf } from '../../domain/devices/seen-bucket.ts';
import { absent, decodeCounts } from '../../storage/lmdb/devices/device-index.ts';
import { changeName } from '../../storage/lmdb/devices/name-index.ts';
import { changeSeen } from '../../storage/lmdb/devices/seen-index.ts';
import { changeTags } from '../../storage/lmdb/devices/tag-index.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { decodeSeen, encodeSeen } from '../../storage/lmdb/layout/activity-record.ts';
import { decodeDevice, encodeDevice } from '../../storage/lmdb/layout/device-record.ts';
import { keyOfDevice, keyOfRetiring, readDevice } from '../../storage/lmdb/layout/keys.ts';
import { storedJumpsMs } from '../../storage/lmdb/layout/shard-clock.ts';
import { openTables, type Tables } from '../../storage/lmdb/layout/tables.ts';
import { deviceOfRow, rowOf } from '../../storage/postgres/devices/device-rows.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import { dedupeParts } from './dedupe-parts.ts';
import { endedParts } from './ended-parts.ts';
import { logParts } from './log-parts.ts';
import { mailParts } from './mail-parts.ts';
import type { Part, ShardSide } from './part.ts';

const nothing = Buffer.alloc(0);

/** True if a device belongs to this shard. */
type IsPlaced = (device: DeviceKey) => boolean;

/** Devices and their indexes. */
function deviceParts(tables: Tables, isPlaced: IsPlaced): Part[] {
  return [devices(tables, isPlaced), tags(tables), activity(tables), fleetCounts(tables)];
}

function devices(tables: Tables, isPlaced: IsPlaced): Part<rows.DeviceRow> {
  return {
    name: 'devices',
    table: rows.device,
    source: tables.devices,
    rowsOf({ key, value }) {
      const row = rowOf(decodeDevice(readDevice(key, 0), value));
      check(row, isPlaced);
      return [row];
    },
    write(written) {
      for (const row of written) {
        check(row, isPlaced);
        const made = deviceOfRow(row);
        const { device, oldSecretUntilMs } = made;
        tables.devices.putSync(keyOfDevice(device), encodeDevice(made));
        changeTags(tables.tags, device, absent, made);
        changeName(tables.names, device, '', made.name);
        if (oldSecretUntilMs !== undefined) {
          tables.retiring.putSync(keyOfRetiring(oldSecretUntilMs, device), nothing);
        }
      }
    },
  };
}

/** @throws OperatorError */
function check(row: rows.DeviceRow, isPlaced: IsPlaced): void {
  const { device } = row;
  const who = `Device ${deviceIdOf(device)} of fleet ${fleetIdOf(device)}`;
  if (!isPlaced(device)) {
    throw new OperatorError(
      `${who} is where it does not belong. Name all databases, in the order of store.shards.`,
    );
  }
  // PostgreSQL text holds any character but this one.
  const texts = Object.values(descriptionOf(row)).flat();
  if (texts.some((text) => text.includes('\0'))) {
    throw new OperatorError(
      `${who} has a zero character in its name, in a tag or in another text, which PostgreSQL rejects. Change that first.`,
    );
  }
}

/** In a data folder, tags are written with their devices. */
function tags({ devices }: Tables): Part<rows.DeviceTagRow> {
  return {
    name: 'tags',
    table: rows.deviceTag,
    source: devices,
    rowsOf({ key, value }) {
      const device = readDevice(key, 0);
      const tagged = new Set(decodeDevice(device, value).tags);
      return [...tagged].map((tag) => ({ fleet_id: fleetIdOf(device), tag, device }));
    },
    write: () => {},
  };
}

/** One row per device, even if never seen. */
function activity(tables: Tables): Part<rows.ActivityRow> {
  return {
    name: 'last seen',
    table: rows.activity,
    source: tables.devices,
    rowsOf({ key }) {
      const device = readDevice(key, 0);
      const bytes = tables.activity.getBinary(keyOfDevice(device));
      const seen = bytes && decodeSeen(bytes);
      const address = seen?.address && Buffer.from(seen.address);
      const row = {
        device,
        last_seen_ms: seen?.lastSeenMs ?? null,
        address: address ?? null,
        bucket: bucketOf(seen?.lastSeenMs),
      };
      return [row];
    },
    write(written) {
      for (const { device, last_seen_ms: lastSeenMs, address } of written) {
        if (lastSeenMs !== null) {
          tables.activity.putSync(keyOfDevice(device), encodeSeen(lastSeenMs, address ?? undefined));
        }
        changeSeen(tables.seen, device, null, lastSeenMs ?? undefined);
      }
    },
  };
}

/** Recounted at the end, and compared with the previous counts. */
function fleetCounts({ counts }: Tables): Part<rows.FleetCountRow> {
  return {
    name: 'counts of fleets',
    table: rows.fleetCount,
    where: 't.devices > 0',
    isDerived: true,
    source: counts,
    rowsOf({ key, value }) {
      return [{ fleet_id: key.toString('latin1'), ...decodeCounts(value) }];
    },
    write: () => {},
  };
}

export function shardSideOf(environment: Environment): ShardSide<Tables> {
  const tables = openTables(environment);
  return { tables, jumpsMs: storedJumpsMs(tables.times) };
}

/** All parts of a shard, in copy order. */
export function shardParts(side: ShardSide<Tables>, isPlaced: IsPlaced): Part[] {
  return [
    ...deviceParts(side.tables, isPlaced),
    ...mailParts(side),
    ...endedParts(side),
    ...dedupeParts(side.tables),
    ...logParts(side),
  ];
}
