import { hash } from 'node:crypto';
import { deviceKeyOf, generateDeviceId, generateDeviceSecret } from '../../core/identity.ts';
import type { Device } from './device.ts';
import { type Description, undescribed } from './device-fields.ts';

/** A device to be stored, and the only copy of its secret (D3). */
export interface NewDevice {
  device: Device;
  secret: string;
}

/** SHA-256, 32 bytes: the only form in which a secret is stored. */
export function digestOf(secret: string): Uint8Array {
  return hash('sha256', secret, 'buffer');
}

/** Generates the id and the secret if absent. */
export function newDevice(
  fleetId: string,
  description: Partial<Description>,
  id = generateDeviceId(),
  secret = generateDeviceSecret(),
): NewDevice {
  const device: Device = {
    device: deviceKeyOf(fleetId, id),
    enabled: true,
    secretDigests: [digestOf(secret)],
    ...undescribed,
    ...description,
    createdAtMs: Date.now(),
  };
  return { device, secret };
}
