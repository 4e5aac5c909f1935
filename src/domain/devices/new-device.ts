import { hash } from 'node:crypto';
import { deviceKeyOf, generateDeviceId, generateDeviceSecret } from '../../core/identity.ts';
import type { Device } from './device.ts';

/** A device to be stored, and the only copy of its secret (D3). */
export interface NewDevice {
  device: Device;
  secret: string;
}

/** SHA-256, 32 bytes: the only form in which a secret is stored. */
export function digestOf(secret: string): Uint8Array {
  return hash('sha256', secret, 'buffer');
}

/** Generates `deviceId` and `secret` if absent. */
export function newDevice(
  fleetId: string,
  description: {
    deviceId?: string | undefined;
    secret?: string | undefined;
    name?: string | undefined;
    tags?: readonly string[] | undefined;
  },
): NewDevice {
  const secret = description.secret ?? generateDeviceSecret();
  const device: Device = {
    device: deviceKeyOf(fleetId, description.deviceId ?? generateDeviceId()),
    enabled: true,
    secretDigests: [digestOf(secret)],
    name: description.name ?? '',
    tags: description.tags ?? [],
    createdAtMs: Date.now(),
  };
  return { device, secret };
}
