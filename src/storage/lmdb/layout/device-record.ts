import type { DeviceKey } from '../../../core/identity.ts';
import type { Device, DeviceCredentials } from '../../../domain/devices/device.ts';
import { pack, unpack } from '../../tables/codec.ts';
import { readSequence, sequenceBytes, sequenceKey } from './keys.ts';

/**
 * flags (1: enabled, 2: the last secret expires), number of secrets, their digests, the expiry of the last secret in
 * milliseconds, if it has one; then name, tags and creation time in msgpack.
 */
const enabledFlag = 1;
const endingFlag = 2;
const digestBytes = 32;
const headerBytes = 2;

/** Indexed fields of a device, besides its id and last-seen time. */
export interface Indexed {
  name: string;
  tags: readonly string[];
  enabled: boolean;
}

interface Description {
  name: string;
  tags: string[];
  createdAtMs: number;
}

export function encodeDevice(device: Device): Buffer {
  const { oldSecretUntilMs } = device;
  const flags = (device.enabled ? enabledFlag : 0) | (oldSecretUntilMs === undefined ? 0 : endingFlag);
  const header = Buffer.from([flags, device.secretDigests.length]);
  const ending = oldSecretUntilMs === undefined ? [] : [sequenceKey(oldSecretUntilMs)];
  const description: Description = {
    name: device.name,
    tags: [...device.tags],
    createdAtMs: device.createdAtMs,
  };
  return Buffer.concat([header, ...device.secretDigests, ...ending, pack(description)]);
}

/**
 * Decodes the hot part; the digests are copies.
 * @throws Error for a damaged record: other records' bytes may follow it, which must not be taken for digests.
 */
export function decodeCredentials(bytes: Buffer): DeviceCredentials {
  if (bytes.length < headerBytes) throw new Error('a device record is damaged');
  if (bytes.length <= descriptionAt(bytes)) throw new Error('a device record is damaged');
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

/** The offset of the description. */
function descriptionAt(bytes: Buffer): number {
  const endingBytes = (bytes.readUInt8(0) & endingFlag) === 0 ? 0 : sequenceBytes;
  return headerBytes + bytes.readUInt8(1) * digestBytes + endingBytes;
}

export function decodeDevice(device: DeviceKey, bytes: Buffer): Device {
  return { device, ...decodeCredentials(bytes), ...decodeDescription(bytes) };
}

/** @throws Error for a damaged record. */
export function decodeIndexed(bytes: Buffer): Indexed {
  const { name, tags } = decodeDescription(bytes);
  return { name, tags, enabled: (bytes.readUInt8(0) & enabledFlag) !== 0 };
}

/** Cuts off the bytes that the store's views have beyond their `length`. */
function decodeDescription(bytes: Buffer): Description {
  return unpack(bytes.subarray(descriptionAt(bytes), bytes.length)) as Description;
}

/** True if the bytes can be a device. @throws msgpackr's error for bytes that are not msgpack. */
export function isDeviceRecord(bytes: Buffer): boolean {
  if (bytes.length < headerBytes || bytes.readUInt8(0) > (enabledFlag | endingFlag)) return false;
  const at = descriptionAt(bytes);
  if (at >= bytes.length) return false;
  const { name, tags, createdAtMs } = unpack(bytes.subarray(at)) as Partial<Description>;
  return typeof name === 'string' && Array.isArray(tags) && typeof createdAtMs === 'number';
}
