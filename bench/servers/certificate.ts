import type { TlsFiles } from '../../src/core/config/tls.ts';
import { findCertificate } from '../../src/server/certificates/certificate.ts';
import { configWith } from '../../test/harness/server/config.ts';
import { temporaryFolder } from './temporary-folder.ts';

let made: Promise<TlsFiles> | undefined;

/** The certificate that Fleetpost makes for itself (ECDSA P-256), the same for all subjects of this run. */
export function certificate(): Promise<TlsFiles> {
  made ??= findCertificate(configWith(), temporaryFolder());
  return made;
}
