import { generateDeviceId, generateDeviceSecret } from '../../src/core/identity.ts';
import type { Size } from '../benchmark.ts';
import type { Credentials } from './subject.ts';

export const fleetId = 'BENCH001';

/** Devices of a large fleet; the largest takes minutes to load. */
export const largeFleet: Readonly<Record<Size, number>> = { short: 10_000, usual: 100_000, full: 1_000_000 };

/** Devices for a server that does not make its own. */
export function generateDevices(count: number): Credentials[] {
  return Array.from({ length: count }, () => ({
    fleetId,
    deviceId: generateDeviceId(),
    secret: generateDeviceSecret(),
  }));
}
