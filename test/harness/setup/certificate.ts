import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findCertificate } from '../../../src/server/certificates/certificate.ts';
import { configWith } from '../server/config.ts';

/**
 * One certificate for the servers of all files, as their first would make it for itself: to load what makes it takes
 * a tenth of what a start computes. Which files they are stands in the environment.
 */
export default async function setup(): Promise<() => void> {
  // Each project calls it, and one certificate is enough for all.
  if (process.env.TEST_CERT_FILE !== undefined) return () => {};
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-tls-'));
  const { certFile, keyFile } = await findCertificate(configWith(), folder);
  process.env.TEST_CERT_FILE = certFile;
  process.env.TEST_KEY_FILE = keyFile;
  return () => rmSync(folder, { recursive: true });
}
