import type { FastifyInstance } from 'fastify';
import { BootstrapToken } from '../admin-api/auth/bootstrap-token.ts';
import type { AdminDoor } from '../admin-api/server/admin-listener.ts';
import { sleep } from '../core/async.ts';
import { bracketed, parseHostPort } from '../core/host-port.ts';
import { outliveRejections } from '../core/rejections.ts';
import { createLog, type Log } from '../core/telemetry/log.ts';
import { logDisabled } from '../declarations/disabled-schemas.ts';
import { type DisabledSchema, Fleets } from '../declarations/fleet.ts';
import { done, serverEvent } from '../features/audit/server-event.ts';
import { BackupRunner, NoBackups } from '../features/backups/backups.ts';
import { Claims } from '../features/claiming/claims.ts';
import { LogReader } from '../features/records/log-reader.ts';
import { Records } from '../features/records/records.ts';
import { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import { Cluster } from '../threads/worker-pool.ts';
import { certificateFiles, findCertificate } from './certificates/certificate.ts';
import { CertificateRenewal } from './certificates/certificate-renewal.ts';
import type { Config, EffectiveConfig } from './configuration/config.ts';
import type { Work } from './control-plane/control-plane.ts';
import { keepInFolder } from './control-plane/open-local.ts';
import { createDemo, type Demo } from './demo.ts';
import { enteredByOthers } from './entered-by-others.ts';
import { checkAdminAddress, openDoor } from './open-admin-listener.ts';
import { type Preparation, prepareFolder } from './prepare-folder.ts';
import { Readiness, starting, stopping } from './readiness.ts';
import { reload } from './reload.ts';
import { traceExport } from './trace-export.ts';

/** A server that answers, as `serve` reports it. */
export interface RunningServer {
  url: string;
  adminUrl: string;
  folder: DataFolder;
  /** Of LMDB, or databases. */
  shards: number;
  certFile: string;
  fleets: number;
  /** Only where this start was asked for one and made the data folder. */
  demo: Demo | undefined;
  /** In use; what can change at run time changes in it. */
  config: Config;
  /** Takes what can change at run time from the configuration as it is now, and says in the log what it did. */
  reload(load: () => EffectiveConfig): Promise<void>;
  /**
   * Says for `drainSeconds` that it is stopping, or until the signal; then finishes what is in flight and has all
   * of it on disk.
   */
  stop(hurry: AbortSignal): Promise<void>;
}

/**
 * Starts everything, in order of dependence, on the main thread. The signal ends what may take minutes, a
 * move to another shard count.
 * @throws OperatorError for whatever an operator can mend, and the signal's reason; nothing is left running
 * or locked then.
 */
export async function startServer(
  { values, sources }: EffectiveConfig,
  signal: AbortSignal,
  wantsDemo: boolean,
): Promise<RunningServer> {
  const config = { ...values };
  const log = createLog(config.logLevel);
  checkAdminAddress(config);
  const { engine } = config.store;
  const folder = DataFolder.open(config.data, engine, config.shards);
  const openness = enteredByOthers(folder.path);
  if (openness !== undefined) log.warn(openness);
  const readiness = new Readiness();
  let door: AdminDoor | undefined;
  try {
    const shards = sources.shards === 'default' && engine === 'lmdb' ? folder.shards : config.shards;
    door = await openDoor(config, readiness);
    return await startIn({ folder, shards, config, log, signal, readiness, door, wantsDemo });
  } catch (error) {
    await door?.close();
    folder.close();
    throw error;
  }
}

/** What databases may take to end in order, beyond requests in flight: all that was answered is in them already. */
const farewellSeconds = 10;

interface Start extends Preparation {
  log: Log;
  door: AdminDoor;
  wantsDemo: boolean;
}

async function startIn(start: Start): Promise<RunningServer> {
  const { folder, shards, config, log, readiness, door } = start;
  const shardsBefore = folder.shards;
  const tls = await findCertificate(config, folder.tlsFolder);
  const databases = config.store.engine === 'postgres' ? config.store.shards : undefined;
  if (databases === undefined) await prepareFolder(start);
  readiness.phase = starting;
  const backups = databases === undefined ? new BackupRunner(folder, config, log) : new NoBackups();
  // Loaded where they are needed: a start on LMDB has no use for their library.
  const shared = databases && (await import('./control-plane/databases.ts'));
  const keeping =
    shared === undefined
      ? keepInFolder({ folder, config, isBackupRunning: () => backups.isRunning, log })
      : await shared.openSharedKeeping({ folder: folder.mirrorFolder, config, signal: start.signal, log });
  const { registry, tokens, claimTokens, audit } = keeping;
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
  const cluster: Cluster = await Cluster.start({
    config,
    shardFolders: folder.shardFolders,
    databases: await shared?.openMainDatabases({ config, fleets, log }),
    tls,
    fleets: registry.snapshots(),
    claim: (claim) => claims.claim(claim),
    onDisabledSchema: disableSchema,
    log,
  });
  const claims = new Claims({ config, claimTokens, shards: cluster.shards, audit });
  registry.onChange(async (snapshot) => {
    fleets.put(snapshot);
    await cluster.putFleet(snapshot);
  });
  let adminServer: FastifyInstance | undefined;
  let work: Work | undefined;
  const certificate = await CertificateRenewal.start({
    files: () => certificateFiles(config, folder.tlsFolder),
    renew: (files) => cluster.renewCertificate(files),
    log,
  });
  const traces = traceExport(config, cluster, log);
  const stop = async (): Promise<void> => {
    readiness.phase = stopping;
    if (shared !== undefined) {
      const endMs = (config.shutdownSeconds + farewellSeconds) * 1_000;
      setTimeout(() => {
        log.warn('a database does not answer: the server ends without taking its leave of it');
        process.exit();
      }, endMs).unref();
    }
    await certificate.close();
    await work?.stopWaiting();
    await Promise.all([door.dismiss(), adminServer?.close()]);
    backups.close();
    await work?.stop();
    readiness.close();
    await traces?.close();
    await cluster.stop();
    await keeping.close();
    await door.close();
    folder.close();
  };
  try {
    const bootstrap = new BootstrapToken(knownToken(folder), config.bootstrapToken);
    const { host } = parseHostPort(config.listen);
    const url = `https://${bracketed(host)}:${cluster.listen()}`;
    // Loaded here: half of a start goes into it, and devices are answered meanwhile.
    const { createAdminServer } = await import('../admin-api/server/server.ts');
    const reader = new LogReader(cluster.shards.all, log);
    work = await keeping.startWork({ fleets, shards: cluster.shards, reader });
    const { app, scrape } = await createAdminServer({
      config,
      tokens,
      bootstrap,
      audit,
      claimTokens,
      registry,
      fleets,
      ...work.controls,
      records: new Records({ reader, shards: cluster.shards, config }),
      shards: cluster.shards,
      metrics: cluster.metrics,
      connections: cluster.connections,
      queueDepth: (shard) => cluster.queueDepth(shard),
      connectedOf: (shard) =>
        cluster.shards.connectedOf(shard) ?? cluster.metrics[shard]?.connectedDevices ?? 0,
      devicesOf: (shard) => cluster.shards.devicesOf(shard),
      stalls: () => cluster.stalls(),
      notReady: () => readiness.reasons(),
      traces,
      activity: { sizes: () => cluster.shards.sizes(), talkers: () => cluster.talkers() },
      backups,
      log,
    });
    adminServer = app;
    const adminUrl = `http://${bracketed(parseHostPort(config.admin).host)}:${door.port}`;
    door.admit(app.routing, scrape);
    const publishToken = (): void => {
      bootstrap.turn(config.bootstrapToken);
      const { token } = bootstrap;
      try {
        folder.writeAdminFile({ url: adminUrl, ...(token !== undefined && { token }) });
      } catch (err) {
        log.error(
          { err },
          `${folder.adminFile} cannot be written: commands need --admin ${adminUrl} --token T`,
        );
      }
      if (token !== undefined || tokens.hasAdmin) return;
      log.warn(
        'nobody can manage this server: there is no API token with the scope admin, and bootstrapToken is false',
      );
    };
    publishToken();
    const limits = { lifeSeconds: config.mailLifeSeconds, mailboxMailsMax: config.mailboxMailsMax };
    const demo =
      start.wantsDemo && folder.isNew && databases === undefined
        ? await createDemo(registry, cluster.shards, limits)
        : undefined;
    if (folder.isNew) folder.complete();
    audit.note(serverEvent('START', { shards, shards_before: shardsBefore }), done);
    readiness.phase = undefined;
    outliveRejections(log);
    readiness.watch(cluster);
    cluster.watchStalls();
    const options = { config, shards, tlsFolder: folder.tlsFolder, cluster, certificate, log };
    log.info({ url, adminUrl, data: folder.path, shards: cluster.shards.all.length }, 'ready');
    const fleetCount = registry.snapshots().length;
    return {
      url,
      adminUrl,
      folder,
      shards: cluster.shards.all.length,
      certFile: tls.certFile,
      fleets: fleetCount,
      demo,
      config,
      reload: async (load) => {
        const changed = await reload(load, options);
        audit.note(serverEvent('SIGHUP', { changed: changed.join(' ') }), done);
        publishToken();
      },
      stop: async (hurry) => {
        readiness.phase = stopping;
        await sleep(config.drainSeconds * 1_000, hurry);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function knownToken(folder: DataFolder): string | undefined {
  const known = folder.readAdminFile() as { token?: unknown } | undefined;
  return typeof known?.token === 'string' && known.token.length >= 32 ? known.token : undefined;
}
