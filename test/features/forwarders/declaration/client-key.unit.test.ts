import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { clientKeyProblem } from '../../../../src/features/forwarders/declaration/client-key.ts';
import { makeCertificate } from '../../../harness/server/certificate.ts';

const pem = ({ privateKey }: { privateKey: KeyObject }): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const onCurve = (namedCurve: string): string => pem(generateKeyPairSync('ec', { namedCurve }));
/** Numbers that are no primes, which nobody looks for: they cost what true ones cost. */
function rsa(bytes: number): string {
  const number = (length: number): string =>
    Buffer.concat([Buffer.of(0xff), randomBytes(length - 2), Buffer.of(0xff)]).toString('base64url');
  const half = (): string => number(bytes / 2);
  const key = {
    ...{ kty: 'RSA', e: 'AQAB', n: number(bytes), d: number(bytes) },
    ...{ p: half(), q: half(), dp: half(), dq: half(), qi: half() },
  };
  return pem({ privateKey: createPrivateKey({ format: 'jwk', key }) });
}

it('a client key signs quickly, and is of its certificate', async () => {
  const { cert, key } = await makeCertificate('forwarder');
  expect(clientKeyProblem({})).toBeUndefined();
  expect(clientKeyProblem({ ca: cert })).toBeUndefined();
  expect(clientKeyProblem({ cert, key })).toBeUndefined();
  expect(clientKeyProblem({ cert })).toContain('given together');
  expect(clientKeyProblem({ key })).toContain('given together');
  expect(clientKeyProblem({ cert, key: cert })).toContain('cannot be read');
  expect(clientKeyProblem({ cert: key, key })).toContain('cannot be read');
  for (const quick of [onCurve('prime256v1'), onCurve('secp384r1'), rsa(256), rsa(512)]) {
    expect(clientKeyProblem({ cert, key: quick })).toBe('The client key is not of its certificate.');
  }
  const dsa = pem(generateKeyPairSync('dsa', { modulusLength: 1_024, divisorLength: 160 }));
  for (const slow of [rsa(514), rsa(8_192), onCurve('secp256k1'), dsa]) {
    expect(clientKeyProblem({ cert, key: slow })).toContain('RSA of up to 4096 bits');
  }
});
