import type { DeviceKey } from '../core/identity.ts';
import { pack, unpack } from '../store/codec.ts';
import type { Device, DeviceCredentials } from './shard.ts';

/** flags (1: enabled), number of secrets, their digests; then name, tags and creation time in msgpack. */
const enabledFlag = 1;
const digestBytes = 32;
const headerBytes = 2;

interface Description {
  name: string;
  tags: string[];
  createdAtMs: number;
}

export function encodeDevice(device: Device): Buffer {
  const header = Buffer.from([device.enabled ? enabledFlag : 0, device.secretDigests.length]);
  const description: Description = {
    name: device.name,
    tags: [...device.tags],
    createdAtMs: device.createdAtMs,
  };
  return Buffer.concat([header, ...device.secretDigests, pack(description)]);
}

/**
 * The hot part only; the digests are copies and outlive `bytes`.
 * @throws Error for a damaged record: behind its end lie bytes of others, which must not count as digests.
 */
export function decodeCredentials(bytes: Buffer): DeviceCredentials {
  const secrets = bytes.length < headerBytes ? 0 : bytes.readUInt8(1);
  if (bytes.length <= headerBytes + secrets * digestBytes) throw new Error('a device record is damaged');
  const secretDigests: Uint8Array[] = [];
  for (let i = 0; i < secrets; i += 1) {
    const start = headerBytes + i * digestBytes;
    secretDigests.push(Uint8Array.prototype.slice.call(bytes, start, start + digestBytes));
  }
  return { enabled: (bytes.readUInt8(0) & enabledFlag) !== 0, secretDigests };
}

export function decodeDevice(device: DeviceKey, bytes: Buffer): Device {
  return { device, ...decodeCredentials(bytes), ...decodeDescription(bytes) };
}

/** @throws Error for a damaged record. */
export function decodeTags(bytes: Buffer): readonly string[] {
  return decodeDescription(bytes).tags;
}

/** The store's views are longer than their `length` says. */
function decodeDescription(bytes: Buffer): Description {
  const descriptionAt = headerBytes + bytes.readUInt8(1) * digestBytes;
  return unpack(bytes.subarray(descriptionAt, bytes.length)) as Description;
}

/** Whether these bytes can be a device. @throws what msgpackr throws for bytes that are not its own. */
export function isDeviceRecord(bytes: Buffer): boolean {
  if (bytes.length < headerBytes || bytes.readUInt8(0) > enabledFlag) return false;
  const descriptionAt = headerBytes + bytes.readUInt8(1) * digestBytes;
  if (descriptionAt >= bytes.length) return false;
  const { name, tags, createdAtMs } = unpack(bytes.subarray(descriptionAt)) as Partial<Description>;
  return typeof name === 'string' && Array.isArray(tags) && typeof createdAtMs === 'number';
}
