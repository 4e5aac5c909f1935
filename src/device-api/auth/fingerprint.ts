import { hash } from 'node:crypto';

/** Bytes of a fingerprint: as an integer it is exact in a double. */
const fingerprintBytes = 6;

/**
 * 48 bits that stand for a text in a table shared by all threads. `seed` is drawn at each start, so that
 * nobody outside can choose texts that meet; never 0, which marks an empty place.
 */
export function fingerprint(seed: string, text: string): number {
  return hash('sha256', `${seed} ${text}`, 'buffer').readUIntBE(0, fingerprintBytes) || 1;
}
