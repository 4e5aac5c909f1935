import { bracketed, parseHostPort } from '../core/address.ts';
import type { TlsFiles } from '../core/config/tls.ts';
import type { Log } from '../core/telemetry/log.ts';
import { logDisabled, logDisabledAtStart } from '../declarations/disabled-schemas.ts';
import { type DisabledSchema, Fleets } from '../declarations/fleet.ts';
import { BackupRunner, NoBackups } from '../features/backups/backups.ts';
import { Claims } from '../features/claiming/claims.ts';
import { WorkerPool } from '../threads/worker-pool.ts';
import { AcmeFiles } from './certificates/acme-files.ts';
import { AcmeRenewal } from './certificates/acme-renewal.ts';
import { acmeTerms } from './certificates/acme-terms.ts';
import { certificateFiles } from './certificates/certificate.ts';
import { hostToName } from './certificates/certificate-content.ts';
import { CertificateRenewal } from './certificates/certificate-renewal.ts';
import type { ConfigurationView } from './configuration/configuration-view.ts';
import type { ControlPlane } from './control-plane/control-plane.ts';
import { openLocal } from './control-plane/open-local.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { OpenedAdminListener } from './open-admin-listener.ts';
import { type Preparation, prepareFolder } from './prepare-folder.ts';
import { starting } from './readiness.ts';
import { type TraceExport, traceExport } from './trace-export.ts';

/** Parameters of a server's start. */
export interface DevicesStart extends Preparation, OpenedAdminListener {
  lifecycle: Lifecycle;
  /** Certificate of the device API. */
  tls: TlsFiles;
  wantsDemo: boolean;
  /** Held until an operator releases it, also after later starts. */
  wantsHold: boolean;
  configuration: ConfigurationView;
  log: Log;
}

/** The state besides the shards. */
interface OpenedState {
  controlPlane: ControlPlane;
  backups: BackupRunner | NoBackups;
  /** Undefined if the store is in the data folder. */
  databases: typeof import('./control-plane/databases.ts') | undefined;
}

/** The parts of a server that serve devices. */
export interface DeviceSide {
  url: string;
  /** The one that devices are served on. */
  port: number;
  certFile: string;
  controlPlane: ControlPlane;
  backups: OpenedState['backups'];
  fleets: Fleets;
  cluster: WorkerPool;
  /** Certificates of the device API, and of the admin API if it has one. */
  certificates: readonly CertificateRenewal[];
  /** Undefined if ACME is off. */
  acme: AcmeRenewal | undefined;
  traces: TraceExport | undefined;
}

/** Starts everything up to serving devices. */
export async function startDeviceSide(start: DevicesStart): Promise<DeviceSide> {
  const { lifecycle, folder, config, tls, log, readiness } = start;
  const { controlPlane, backups, databases } = await openState(start);
  const { registry, claimTokens, audit, hold } = controlPlane;
  const snapshots = registry.snapshots();
  logDisabledAtStart(log, snapshots);
  const disableSchema = (schema: DisabledSchema): void => {
    registry.disableSchema(schema).catch((error: unknown) => {
      log.error({ err: error, schema: schema.name }, 'disabling a schema on other threads failed');
    });
  };
  const fleets = new Fleets(snapshots, {
    settings: config.settings,
    // Mail of operators and actions, which would fail for good.
    defersCompiling: false,
    onDisabled: (schema) => {
      logDisabled(log, schema);
      disableSchema(schema);
    },
  });
  const cluster: WorkerPool = await WorkerPool.start({
    config,
    shardFolders: folder.shardFolders,
    databases: await databases?.openMainDatabases({ config, fleets, hold: hold.flag, log }),
    tls,
    fleets: snapshots,
    hold: hold.flag,
    claim: (claim) => claims.claim(claim),
    onDisabledSchema: disableSchema,
    log,
  });
  lifecycle.start('workers', () => cluster.stop());
  const claims = new Claims({ config, claimTokens, shards: cluster.shards, audit });
  await registry.onChange(snapshots, async (update) => {
    fleets.update(update);
    await cluster.updateFleet(update);
  });
  const { certificates, acme } = await startCertificates(start, cluster);
  const traces = traceExport(config, cluster, log);
  lifecycle.start('trace export', () => traces?.close());
  // It samples the shards from the end of the start on.
  lifecycle.start('readiness', () => readiness.close());
  const host = hostToName(parseHostPort(config.listen).host, tls.certFile);
  const port = await cluster.listen();
  const url = `https://${bracketed(host)}:${port}`;
  return {
    url,
    port,
    certFile: tls.certFile,
    controlPlane,
    backups,
    fleets,
    cluster,
    certificates,
    acme,
    traces,
  };
}

/** Follows the certificates that are in use, and renews that of an ACME directory. */
async function startCertificates(
  { lifecycle, config, folder, adminCertificate, log }: DevicesStart,
  cluster: WorkerPool,
): Promise<Pick<DeviceSide, 'certificates' | 'acme'>> {
  const certificate = await CertificateRenewal.start({
    listener: 'device API',
    files: () => certificateFiles(config, folder.tlsFolder),
    renew: (files) => cluster.renewCertificate(files),
    log,
  });
  lifecycle.start('certificate renewal', () => certificate.close());
  const certificates = adminCertificate === undefined ? [certificate] : [certificate, adminCertificate];
  const terms = acmeTerms(config);
  if (terms === undefined) return { certificates, acme: undefined };
  const files = new AcmeFiles(terms, folder.tlsFolder);
  const renew = () => Promise.all(certificates.map((one) => one.poll()));
  const acme = await AcmeRenewal.start({ terms, files, renew, log });
  lifecycle.start('ACME', () => acme.close());
  return { certificates, acme };
}

/** Opens the state in a data folder, after bringing it to the shard count and format of this start; or in databases. */
async function openState(start: DevicesStart): Promise<OpenedState> {
  const { lifecycle, folder, config, log, signal, readiness } = start;
  const isInFolder = config.store.engine === 'lmdb';
  if (isInFolder) await prepareFolder(start);
  readiness.phase = starting;
  const backups = isInFolder ? new BackupRunner(folder, config, log) : new NoBackups();
  // Imported only if needed: a start on LMDB does not load their library.
  const databases = isInFolder ? undefined : await import('./control-plane/databases.ts');
  const controlPlane =
    databases === undefined
      ? openLocal({ folder, config, isBackupRunning: () => backups.isRunning, log })
      : await databases.openSharedControlPlane({ config, signal, log });
  lifecycle.start('control plane', () => controlPlane.close());
  // Before anything starts that acts.
  if (start.wantsHold) await controlPlane.hold.begin();
  return { controlPlane, backups, databases };
}
