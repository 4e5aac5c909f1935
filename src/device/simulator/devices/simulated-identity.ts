import { createHash } from 'node:crypto';

const prefix = 'SIM';
const digits = 7;
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The id of a simulated device, which says its number. */
export function simulatedDeviceId(device: number): string {
  return prefix + device.toString(36).toUpperCase().padStart(digits, '0');
}

/** The number of a simulated device; -1 for another id. */
export function simulatedDeviceNumber(id: string): number {
  if (!id.startsWith(prefix)) return -1;
  const device = Number.parseInt(id.slice(prefix.length), 36);
  return simulatedDeviceId(device) === id ? device : -1;
}

/**
 * The secret of a simulated device: made when it is needed, so that a million need no memory. The salt is the run's, so
 * that nobody who knows the seed has the secrets of a fleet on a server that others reach.
 */
export function simulatedSecret(salt: string, device: number): string {
  const digest = createHash('sha256').update(`${salt}:${device}`).digest();
  let secret = 'FOS-';
  for (const byte of digest) secret += letters[byte & 31];
  return secret;
}
