import { randomBytes } from 'node:crypto';
import { invalidForwarder } from './invalid-forwarder.ts';

/** Prefix of keys in Standard Webhooks. */
const prefix = 'whsec_';

export function generateSigningSecret(): string {
  return `${prefix}${randomBytes(32).toString('base64')}`;
}

/** Decodes a secret; undefined for an invalid one. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.slice(prefix.length);
  if (!secret.startsWith(prefix) || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  return Buffer.from(text, 'base64');
}

/** @throws ApiError invalid_forwarder. */
export function checkSigningSecret(secret: string): void {
  const bytes = signingKey(secret)?.length ?? 0;
  if (bytes >= 24 && bytes <= 64) return;
  throw invalidForwarder('A signing secret must be whsec_ and 24 to 64 bytes in base64.');
}
