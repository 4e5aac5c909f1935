import { randomBytes } from 'node:crypto';

/** As Standard Webhooks writes keys. */
const prefix = 'whsec_';

export function generateSigningSecret(): string {
  return `${prefix}${randomBytes(32).toString('base64')}`;
}

/** Undefined for what is no such secret. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.slice(prefix.length);
  if (!secret.startsWith(prefix) || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  return Buffer.from(text, 'base64');
}
