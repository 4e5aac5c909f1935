import type { AdminListener } from '../admin-api/server/admin-listener.ts';
import { bracketed, parseHostPort } from '../core/host-port.ts';
import type { Log } from '../core/telemetry/log.ts';
import { logDisabled } from '../declarations/disabled-schemas.ts';
import { type DisabledSchema, Fleets } from '../declarations/fleet.ts';
import { BackupRunner, NoBackups } from '../features/backups/backups.ts';
import { Claims } from '../features/claiming/claims.ts';
import { WorkerPool } from '../threads/worker-pool.ts';
import { certificateFiles, findCertificate } from './certificates/certificate.ts';
import { CertificateRenewal } from './certificates/certificate-renewal.ts';
import type { ControlPlane } from './control-plane/control-plane.ts';
import { openLocal } from './control-plane/open-local.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type Preparation, prepareFolder } from './prepare-folder.ts';
import { starting } from './readiness.ts';
import { type TraceExport, traceExport } from './trace-export.ts';

/** What the parts of a server are started from. */
export interface DevicesStart extends Preparation {
  lifecycle: Lifecycle;
  door: AdminListener;
  wantsDemo: boolean;
  log: Log;
}

/** What is kept, and the databases of the store where it is not the data folder. */
interface Kept {
  keeping: ControlPlane;
  backups: BackupRunner | NoBackups;
  databases: typeof import('./control-plane/databases.ts') | undefined;
}

/** What devices are answered by. */
export interface DeviceSide {
  url: string;
  certFile: string;
  keeping: ControlPlane;
  backups: Kept['backups'];
  fleets: Fleets;
  cluster: WorkerPool;
  certificate: CertificateRenewal;
  traces: TraceExport | undefined;
}

/** Until devices are answered. */
export async function startDeviceSide(start: DevicesStart): Promise<DeviceSide> {
  const { lifecycle, folder, config, log, readiness } = start;
  const tls = await findCertificate(config, folder.tlsFolder);
  const { keeping, backups, databases } = await startKeeping(start);
  const { registry, claimTokens, audit } = keeping;
  const disableSchema = (schema: DisabledSchema): void => {
    registry.disableSchema(schema).catch((error: unknown) => {
      log.error(
        { err: error, schema: schema.name },
        'the other threads could not be told of a disabled schema',
      );
    });
  };
  const fleets = new Fleets(registry.snapshots(), {
    limits: config,
    onDisabled: (schema) => {
      logDisabled(log, schema);
      disableSchema(schema);
    },
  });
  const cluster: WorkerPool = await WorkerPool.start({
    config,
    shardFolders: folder.shardFolders,
    databases: await databases?.openMainDatabases({ config, fleets, log }),
    tls,
    fleets: registry.snapshots(),
    claim: (claim) => claims.claim(claim),
    onDisabledSchema: disableSchema,
    log,
  });
  lifecycle.start('workers', () => cluster.stop());
  const claims = new Claims({ config, claimTokens, shards: cluster.shards, audit });
  registry.onChange(async (snapshot) => {
    fleets.put(snapshot);
    await cluster.putFleet(snapshot);
  });
  const certificate = await CertificateRenewal.start({
    files: () => certificateFiles(config, folder.tlsFolder),
    renew: (files) => cluster.renewCertificate(files),
    log,
  });
  lifecycle.start('renewal of the certificate', () => certificate.close());
  const traces = traceExport(config, cluster, log);
  lifecycle.start('export of traces', () => traces?.close());
  // It looks at the shards from the end of the start on.
  lifecycle.start('readiness', () => readiness.close());
  const url = `https://${bracketed(parseHostPort(config.listen).host)}:${cluster.listen()}`;
  return { url, certFile: tls.certFile, keeping, backups, fleets, cluster, certificate, traces };
}

/** In a data folder, which is brought to the shards and the format of this start; or in databases. */
async function startKeeping(start: DevicesStart): Promise<Kept> {
  const { lifecycle, folder, config, log, signal, readiness } = start;
  const isInFolder = config.store.engine === 'lmdb';
  if (isInFolder) await prepareFolder(start);
  readiness.phase = starting;
  const backups = isInFolder ? new BackupRunner(folder, config, log) : new NoBackups();
  // Loaded where they are needed: a start on LMDB has no use for their library.
  const databases = isInFolder ? undefined : await import('./control-plane/databases.ts');
  const keeping =
    databases === undefined
      ? openLocal({ folder, config, isBackupRunning: () => backups.isRunning, log })
      : await databases.openSharedControlPlane({ folder: folder.mirrorFolder, config, signal, log });
  lifecycle.start('what is kept besides the shards', () => keeping.close());
  return { keeping, backups, databases };
}
