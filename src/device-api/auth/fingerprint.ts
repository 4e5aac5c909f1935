import { hash } from 'node:crypto';

/** Size of a fingerprint; as an integer it is exact in a double. */
const fingerprintBytes = 6;

/**
 * Hashes a text to 48 bits, as its key in a table shared by all threads. `seed` is random at each start, so that no
 * client can choose texts that collide. Never 0, which marks an empty slot.
 */
export function fingerprint(seed: string, text: string): number {
  return hash('sha256', `${seed} ${text}`, 'buffer').readUIntBE(0, fingerprintBytes) || 1;
}
