import { deviceKeyOf, generateDeviceId, generateDeviceSecret } from '../../src/core/identity.ts';
import type { Device } from '../../src/domain/devices/device.ts';
import { undescribed } from '../../src/domain/devices/device-fields.ts';
import { digestOf } from '../../src/domain/devices/new-device.ts';
import { fleetId } from '../servers/devices.ts';
import { payloadOf, payloadSchema } from '../servers/payload-schema.ts';

/** Payload that the whole-server benchmarks send as well. */
export const payload = Buffer.from(payloadOf(100));
export const schemaText = JSON.stringify(payloadSchema);

export interface SampleDevice {
  device: Device;
  deviceId: string;
  secret: string;
}

export function sampleDevice(): SampleDevice {
  const deviceId = generateDeviceId();
  const secret = generateDeviceSecret();
  const device: Device = {
    device: deviceKeyOf(fleetId, deviceId),
    enabled: true,
    secretDigests: [digestOf(secret)],
    ...undescribed,
    name: 'Pump 1',
    tags: ['outdoor'],
    createdAtMs: Date.now(),
  };
  return { device, deviceId, secret };
}

/** `values[index]`, and from the front again behind the last. */
export function cycled<T>(values: readonly T[], index: number): T {
  return values[index % values.length] as T;
}
