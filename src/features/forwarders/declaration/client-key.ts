import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { ForwarderTls } from './forwarder.ts';

/** A signature takes the thread time by the cube of them: 20 ms for so many, minutes for what a body has room for. */
const rsaBitsMax = 4_096;
const curves: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/**
 * Why a client certificate and its key may not be used, in a sentence; undefined if they may, or there are none. The key
 * signs each handshake on the thread that serves all fleets, so none may take long.
 */
export function clientKeyProblem({ cert, key }: ForwarderTls): string | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    return 'A client certificate and its key must be given together.';
  }
  let privateKey: KeyObject;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
    privateKey = createPrivateKey(key);
  } catch {
    return 'The client certificate or its key cannot be read: they must be PEM, the key without a passphrase.';
  }
  if (!isQuick(privateKey)) {
    return `A client key must be RSA of up to ${rsaBitsMax} bits, P-256, P-384, P-521 or Ed25519.`;
  }
  return certificate.checkPrivateKey(privateKey) ? undefined : 'The client key is not of its certificate.';
}

function isQuick({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  if (asymmetricKeyType === 'ec') return curves.includes(asymmetricKeyDetails?.namedCurve);
  const bits = asymmetricKeyDetails?.modulusLength ?? Number.POSITIVE_INFINITY;
  return asymmetricKeyType === 'ed25519' || (asymmetricKeyType === 'rsa' && bits <= rsaBitsMax);
}
