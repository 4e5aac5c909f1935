import { expect, it } from 'vitest';
import { generateDeviceSecret } from '../../../src/core/identity.ts';
import { SecretFingerprint } from '../../../src/device-api/auth/cached-device.ts';

it('D3: the fingerprint of a secret fits that secret, and none that differs anywhere', () => {
  for (let secrets = 0; secrets < 100; secrets += 1) {
    const secret = generateDeviceSecret();
    const fingerprint = new SecretFingerprint(secret);
    expect(fingerprint.fits(secret)).toBe(true);
    for (let at = 0; at < secret.length; at += 1) {
      const character = secret[at] === 'A' ? 'B' : 'A';
      expect(fingerprint.fits(secret.slice(0, at) + character + secret.slice(at + 1))).toBe(false);
      if (at === 0 || secret[at] === secret[at - 1]) continue;
      const swapped = `${secret[at]}${secret[at - 1]}`;
      expect(fingerprint.fits(secret.slice(0, at - 1) + swapped + secret.slice(at + 1))).toBe(false);
    }
    for (const other of ['', secret.slice(1), `${secret}A`, generateDeviceSecret()]) {
      expect(fingerprint.fits(other)).toBe(false);
    }
  }
});
