import type { DeviceKey } from '../../../core/identity.ts';
import type { Device, DeviceCredentials } from '../../../domain/devices/device.ts';
import { deviceFields, undescribed } from '../../../domain/devices/device-fields.ts';
import type { KeptField, RecordOf } from '../../../domain/fields.ts';
import { pack, unpack } from '../../tables/codec.ts';
import { readSequence, sequenceBytes, sequenceKey } from './keys.ts';

/**
 * flags (1: enabled, 2: the last secret expires), number of secrets, their digests, the expiry of the last secret in
 * milliseconds, if it has one; then the other fields in msgpack.
 */
const enabledFlag = 1;
const endingFlag = 2;
const digestBytes = 32;
const headerBytes = 2;

/** Indexed fields of a device, besides its id and last-seen time. */
export type Indexed = Pick<Device, 'name' | 'tags' | 'enabled'>;

type Packed = RecordOf<typeof deviceFields>;

const fields = Object.entries(deviceFields) as [keyof Packed, KeptField][];

export function encodeDevice(device: Device): Buffer {
  const { oldSecretUntilMs } = device;
  const flags = (device.enabled ? enabledFlag : 0) | (oldSecretUntilMs === undefined ? 0 : endingFlag);
  const header = Buffer.from([flags, device.secretDigests.length]);
  const ending = oldSecretUntilMs === undefined ? [] : [sequenceKey(oldSecretUntilMs)];
  return Buffer.concat([header, ...device.secretDigests, ...ending, pack(packedFields(device))]);
}

function packedFields(device: Device): object {
  const packed: Record<string, unknown> = {};
  for (const [name, { since }] of fields) if (since === 1 || device[name] !== '') packed[name] = device[name];
  return packed;
}

/**
 * Decodes the hot part; the digests are copies.
 * @throws Error for a damaged record: other records' bytes may follow it, which must not be taken for digests.
 */
export function decodeCredentials(bytes: Buffer): DeviceCredentials {
  if (bytes.length < headerBytes) throw new Error('a device record is damaged');
  if (bytes.length <= packedAt(bytes)) throw new Error('a device record is damaged');
  const secrets = bytes.readUInt8(1);
  const secretDigests: Uint8Array[] = [];
  for (let i = 0; i < secrets; i += 1) {
    const start = headerBytes + i * digestBytes;
    secretDigests.push(Uint8Array.prototype.slice.call(bytes, start, start + digestBytes));
  }
  const flags = bytes.readUInt8(0);
  const credentials: DeviceCredentials = { enabled: (flags & enabledFlag) !== 0, secretDigests };
  if ((flags & endingFlag) !== 0) {
    credentials.oldSecretUntilMs = readSequence(bytes, headerBytes + secrets * digestBytes);
  }
  return credentials;
}

/** The offset of the fields in msgpack. */
function packedAt(bytes: Buffer): number {
  const endingBytes = (bytes.readUInt8(0) & endingFlag) === 0 ? 0 : sequenceBytes;
  return headerBytes + bytes.readUInt8(1) * digestBytes + endingBytes;
}

export function decodeDevice(device: DeviceKey, bytes: Buffer): Device {
  return { device, ...decodeCredentials(bytes), ...undescribed, ...unpackFields(bytes) };
}

/** @throws Error for a damaged record. */
export function decodeIndexed(bytes: Buffer): Indexed {
  const { name, tags } = unpackFields(bytes);
  return { name, tags, enabled: (bytes.readUInt8(0) & enabledFlag) !== 0 };
}

/** Cuts off the bytes that the store's views have beyond their `length`. */
function unpackFields(bytes: Buffer): Packed {
  return unpack(bytes.subarray(packedAt(bytes), bytes.length)) as Packed;
}

const isSound: Partial<Record<KeptField['kind'], (value: unknown) => boolean>> = {
  text: (value) => typeof value === 'string',
  texts: Array.isArray,
  time: (value) => typeof value === 'number',
};

/** True if the bytes can be a device. @throws msgpackr's error for bytes that are not msgpack. */
export function isDeviceRecord(bytes: Buffer): boolean {
  if (bytes.length < headerBytes || bytes.readUInt8(0) > (enabledFlag | endingFlag)) return false;
  const at = packedAt(bytes);
  if (at >= bytes.length) return false;
  const packed = unpack(bytes.subarray(at)) as Partial<Packed>;
  return fields.every(([name, { kind, since }]) => {
    const value = packed[name];
    return (value === undefined && since > 1) || isSound[kind]?.(value);
  });
}
