import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { findCertificate } from '../../src/server/certificates/certificate.ts';
import type { loadConfig, runningConfig } from '../../src/server/configuration/config.ts';

/**
 * One certificate for the servers of all files, as their first would make it for itself: to load what makes it takes
 * a tenth of what a start computes. Which files they are stands in the environment.
 */
export default async function setup(): Promise<() => void> {
  // Each project calls it, and one certificate is enough for all.
  if (process.env.TEST_CERT_FILE !== undefined) return () => {};
  const built = (path: string): Promise<unknown> =>
    import(new URL(`../../dist/${path}`, import.meta.url).href);
  const { findCertificate: find } = (await built('server/certificates/certificate.js')) as {
    findCertificate: typeof findCertificate;
  };
  const { loadConfig: load, runningConfig: running } = (await built('server/configuration/config.js')) as {
    loadConfig: typeof loadConfig;
    runningConfig: typeof runningConfig;
  };
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-tls-'));
  const { certFile, keyFile } = await find(running(load(undefined, {}, {}).values), folder);
  process.env.TEST_CERT_FILE = certFile;
  process.env.TEST_KEY_FILE = keyFile;
  return () => rmSync(folder, { recursive: true });
}
