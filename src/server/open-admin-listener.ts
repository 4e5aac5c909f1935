import { AdminListener } from '../admin-api/server/admin-listener.ts';
import { Probe } from '../admin-api/server/probe.ts';
import { parseHostPort } from '../core/address.ts';
import type { TlsFiles } from '../core/config/tls.ts';
import { OperatorError } from '../core/errors.ts';
import type { Log } from '../core/telemetry/log.ts';
import { adminCertificateFiles, checkConfigured } from './certificates/certificate.ts';
import { CertificateRenewal } from './certificates/certificate-renewal.ts';
import type { RunningConfig } from './configuration/config.ts';
import type { Readiness } from './readiness.ts';

/** The admin API's listener, with the renewal of its certificate where it has one. */
export interface OpenedAdminListener {
  adminListener: AdminListener;
  adminCertificate: CertificateRenewal | undefined;
}

/** @throws OperatorError for an admin address that other machines can reach in plain HTTP, or a bad certificate. */
export function checkAdminAddress(config: RunningConfig, tlsFolder: string): TlsFiles | undefined {
  const files = adminCertificateFiles(config, tlsFolder);
  return files === undefined ? undefined : checkConfigured(config, files);
}

export interface AdminListenerStart {
  config: RunningConfig;
  tlsFolder: string;
  readiness: Readiness;
  log: Log;
}

/** Opens before a reshard, which may take minutes, so that a port in use fails at once and health is answered meanwhile. */
export async function openAdminListener(start: AdminListenerStart): Promise<OpenedAdminListener> {
  const { config, tlsFolder, readiness, log } = start;
  const reasons = () => readiness.reasons();
  const tls = checkAdminAddress(config, tlsFolder);
  const address = { ...parseHostPort(config.admin), tls };
  const probe =
    config.probe === ''
      ? undefined
      : await opened(config.probe, 'probe', () => Probe.open(parseHostPort(config.probe), config, reasons));
  try {
    const adminListener = await opened(config.admin, 'the admin API', () =>
      AdminListener.open({ address, probe, config, reasons, log }),
    );
    const adminCertificate =
      tls === undefined
        ? undefined
        : await CertificateRenewal.start({
            listener: 'admin API',
            files: () => adminCertificateFiles(config, tlsFolder) ?? tls,
            renew: (files) => adminListener.renewCertificate(files),
            log,
          });
    return { adminListener, adminCertificate };
  } catch (error) {
    await probe?.close();
    throw error;
  }
}

async function opened<T>(address: string, what: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'EADDRINUSE' ? 'is another server using it?' : `${message}.`;
    throw new OperatorError(`Cannot listen on ${address} for ${what}: ${reason}`);
  }
}
