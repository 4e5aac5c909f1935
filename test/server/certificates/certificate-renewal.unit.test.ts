import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { CertificateRenewal } from '../../../src/server/certificates/certificate-renewal.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { writeCertificate } from '../../harness/server/certificate.ts';

it('a certificate that could not be handed over is tried again, and bad files are not until they change', async () => {
  const folder = temporaryFolder();
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  await writeCertificate('first', files);
  const outcomes = ['the worker is starting', 'the worker is starting', undefined];
  let renewals = 0;
  const renewal = await CertificateRenewal.start({
    listener: 'device API',
    files: () => files,
    renew: () => {
      const reason = outcomes[renewals];
      renewals += 1;
      if (reason !== undefined) throw new Error(reason);
    },
    log: createLog('silent'),
  });
  try {
    writeFileSync(files.keyFile, 'no key');
    await renewal.poll();
    expect(renewals).toBe(0);
    await writeCertificate('second', files);
    for (const tries of [1, 2, 3, 3]) {
      await renewal.poll();
      expect(renewals).toBe(tries);
    }
  } finally {
    await renewal.close();
  }
});
