import { generateDeviceId, generateDeviceSecret } from '../../src/core/identity.ts';
import type { Credentials } from './subject.ts';

export const fleetId = 'BENCH001';

/** Devices for a server that does not make its own. */
export function generateDevices(count: number): Credentials[] {
  return Array.from({ length: count }, () => ({
    fleetId,
    deviceId: generateDeviceId(),
    secret: generateDeviceSecret(),
  }));
}
