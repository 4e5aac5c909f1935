import { type DeviceKey, deviceIdOf } from '../../../core/identity.ts';
import type { DeviceFilter, DeviceIndex } from '../../../domain/devices/device-query.ts';
import { bucketInKey, bucketOf } from '../../../domain/devices/seen-bucket.ts';
import { nameKeyOf } from './device-rows.ts';

/** A row of an index: what it has besides the device is not read in all of them. */
export type Entry = {
  device: DeviceKey;
  name_key: Buffer | null;
  bucket: number;
};

/** The entries of an index that a query can be about, behind a position, as a statement names them. */
interface EntryRange {
  /** `FROM` and `WHERE`, of a table `e`. */
  from: string;
  order: string;
  /** Of $1 and so on. */
  values: unknown[];
  positionOf(entry: Entry): string;
}

/** Sorts behind every device id, and in names behind every byte of UTF-8. */
const afterIds = '~';
const afterNames = Buffer.of(0xff);
const deviceIdLength = 10;
const bucketBytes = 4;
/** The same for every device of a fleet, in the words of the index. */
const fleet = 'left(e.device, 8) COLLATE "C" = $1';

export function entriesOf(by: DeviceIndex, filter: DeviceFilter, after: string): EntryRange {
  const { fleetId } = filter;
  switch (by) {
    case 'tag':
      return {
        from: 'device_tag e WHERE e.fleet_id = $1 AND e.tag = $2 AND e.device > $3',
        order: 'e.device',
        values: [fleetId, textOf(filter.tags?.[0] ?? ''), fleetId + textOf(after)],
        positionOf: idPosition,
      };
    case 'name':
      return namesOf(filter, after);
    case 'seen':
      return seenOf(filter, after);
    default:
      return {
        from: `device e WHERE ${by === 'disabled' ? 'NOT e.enabled AND' : ''} e.device > $1 AND e.device < $2`,
        order: 'e.device',
        values: [fleetId + textOf(after), fleetId + afterIds],
        positionOf: idPosition,
      };
  }
}

function idPosition({ device }: Entry): string {
  return deviceIdOf(device);
}

/** A position is the beginning of the name, a zero byte, the device id. */
function namesOf({ fleetId, namePrefix = '' }: DeviceFilter, after: string): EntryRange {
  const first = nameKeyOf(namePrefix);
  const idAt = after.length - deviceIdLength;
  const isWhole = idAt > 0 && after[idAt - 1] === '\0';
  const name = isWhole ? after.slice(0, idAt - 1) : after;
  return {
    from: `device e WHERE ${fleet} AND e.name_key >= $2 AND e.name_key < $3 AND (e.name_key, e.device) > ($4, $5)`,
    order: 'e.name_key, e.device',
    values: [
      fleetId,
      first,
      Buffer.concat([first, afterNames]),
      Buffer.from(name, 'latin1'),
      isWhole ? fleetId + textOf(after.slice(idAt)) : '',
    ],
    positionOf: ({ device, name_key: key }) => `${key?.toString('latin1') ?? ''}\0${deviceIdOf(device)}`,
  };
}

/** A position is the bucket in four bytes, the device id. */
function seenOf({ fleetId, seenAfterMs, seenBeforeMs }: DeviceFilter, after: string): EntryRange {
  const [first, last] = [bucketOf(seenAfterMs), bucketOf(seenBeforeMs ?? Number.MAX_SAFE_INTEGER)];
  const isPosition = after.length >= bucketBytes;
  return {
    from: `activity e WHERE ${fleet} AND e.bucket >= $2 AND e.bucket <= $3 AND (e.bucket, e.device) > ($4, $5)`,
    order: 'e.bucket, e.device',
    values: [
      fleetId,
      first,
      last,
      isPosition ? Buffer.from(after, 'latin1').readUInt32BE() : -1,
      isPosition ? fleetId + textOf(after.slice(bucketBytes)) : '',
    ],
    positionOf: ({ device, bucket }) => bucketInKey(bucket) + deviceIdOf(device),
  };
}

/** A position may come from anywhere, and no text of a database has a zero byte. */
function textOf(text: string): string {
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}
