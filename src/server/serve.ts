import { sleep } from '../core/async.ts';
import { boundKeyExchange } from '../core/config/tls.ts';
import { createLog, type Log, muteLibraries } from '../core/telemetry/log.ts';
import { outliveRejections } from '../core/telemetry/rejections.ts';
import { done, serverEvent } from '../features/audit/audit-entry.ts';
import { DataFolder, tlsFolderIn } from '../storage/lmdb/environment/data-folder.ts';
import { findCertificate } from './certificates/certificate.ts';
import { type EffectiveConfig, type RunningConfig, runningConfig } from './configuration/config.ts';
import { ConfigurationView } from './configuration/configuration-view.ts';
import { createDemo, type Demo } from './demo.ts';
import { enteredByOthers } from './entered-by-others.ts';
import { Lifecycle, type StopLimit } from './lifecycle.ts';
import { checkAdminAddress, openAdminListener } from './open-admin-listener.ts';
import { Readiness, stopping } from './readiness.ts';
import { reload } from './reload.ts';
import { type DevicesStart, startDeviceSide } from './start-devices.ts';

/** A running server, as `serve` reports it. */
export interface RunningServer {
  url: string;
  adminUrl: string;
  folder: DataFolder;
  /** Number of LMDB shards or of databases. */
  shards: number;
  certFile: string;
  fleets: number;
  /** True if forwarders, actions, broadcasts and delayed mail wait for a release. */
  held: boolean;
  /** Set only if requested, and if this start created the data folder. */
  demo: Demo | undefined;
  /** A link to the console that works once. Set only with `--demo`, in a build with the console. */
  consoleLink: string | undefined;
  /** Configuration in use, whose settings `reload` changes. */
  config: RunningConfig;
  /** Applies changes of the configuration that are possible at run time, and logs them. */
  reload(load: () => EffectiveConfig): Promise<void>;
  /**
   * Drains for `drainSeconds`, or until the signal; then finishes requests in flight and writes everything to disk.
   * Logs the cause.
   */
  stop(cause: string, hurry: AbortSignal): Promise<void>;
}

/**
 * Starts everything on the main thread, in order of dependence. The signal stops a reshard, which may take minutes.
 * @throws OperatorError for whatever an operator can fix, or the signal's reason; nothing is left running or locked then.
 */
export async function startServer(
  effective: EffectiveConfig,
  signal: AbortSignal,
  wants: Pick<DevicesStart, 'wantsDemo' | 'wantsHold'>,
): Promise<RunningServer> {
  const { values, sources } = effective;
  boundKeyExchange();
  const config = runningConfig(values);
  const log = createLog(config.settings.current.logLevel);
  checkAdminAddress(config, tlsFolderIn(config.data));
  const { engine } = config.store;
  const folder = DataFolder.open(config.data, engine, config.shards);
  const openness = enteredByOthers(folder.path);
  if (openness !== undefined) log.warn(openness);
  const readiness = new Readiness();
  const lifecycle = new Lifecycle();
  lifecycle.start('data folder', () => folder.close());
  const stop = async (): Promise<void> => {
    readiness.phase = stopping;
    await lifecycle.stop(stopLimit(config, log));
  };
  try {
    const shards = sources.shards === 'default' && engine === 'lmdb' ? folder.shards : config.shards;
    const { tlsFolder } = folder;
    const tls = await findCertificate(config, tlsFolder);
    const opened = await openAdminListener({ config, tlsFolder, readiness, log });
    lifecycle.start('admin listener', async () => {
      await opened.adminCertificate?.close();
      await opened.adminListener.close();
    });
    const configuration = new ConfigurationView(effective, config, shards);
    const common = { configuration, folder, shards, config, log, signal, readiness, lifecycle };
    const running = await startParts({ ...common, ...opened, ...wants, tls });
    return {
      ...running,
      stop: async (cause, hurry) => {
        const { drainSeconds } = config.settings.current;
        log.info({ cause, drainSeconds }, 'stopping');
        readiness.phase = stopping;
        await sleep(drainSeconds * 1_000, hurry);
        await stop();
        log.info('stopped');
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Time to stop after requests in flight had theirs (shutdownSeconds); everything answered is already committed. */
const stopSecondsMax = 10;

/** Ends the process when a part does not stop: a database that does not answer, say, or a disk that hangs. */
function stopLimit({ settings }: RunningConfig, log: Log): StopLimit {
  return {
    secondsMax: settings.current.shutdownSeconds + stopSecondsMax,
    onLate: (part = 'process') => {
      log.error({ part }, 'a part does not stop; exiting without it');
      process.exit();
    },
  };
}

async function startParts(start: DevicesStart): Promise<Omit<RunningServer, 'stop'>> {
  const { configuration, folder, shards, config, log, readiness } = start;
  const shardsBefore = folder.shards;
  // Half of what a start loads: read while the workers start.
  const operators = import('./start-operators.ts');
  const devices = await startDeviceSide(start);
  const { startOperatorSide } = await operators;
  const { adminUrl, publishToken, consoleLink } = await startOperatorSide(start, devices);
  const { url, certFile, controlPlane, cluster, certificates } = devices;
  const { registry, hold, audit } = controlPlane;
  publishToken();
  const limits = {
    ttlSeconds: config.settings.current.mailTtlSeconds,
    mailboxMailsMax: config.settings.current.mailboxMailsMax,
  };
  const demo =
    start.wantsDemo && folder.isNew && config.store.engine === 'lmdb'
      ? await createDemo(registry, cluster.shards, limits)
      : undefined;
  if (folder.isNew) folder.complete();
  const held = hold.isHeld;
  audit.note(
    serverEvent('START', { shards, shards_before: shardsBefore, ...(held && { held: 'true' }) }),
    done,
  );
  readiness.phase = undefined;
  outliveRejections(log);
  muteLibraries();
  readiness.watch(cluster);
  await cluster.watchStalls();
  const options = { config, shards, tlsFolder: folder.tlsFolder, cluster, configuration, certificates, log };
  const databases = config.store.engine === 'postgres' ? cluster.shards.all.length : undefined;
  log.info({ url, adminUrl, data: folder.path, shards, databases }, 'ready');
  if (held) {
    log.warn('server held: forwarders, actions, broadcasts and delayed mail wait for "fleetpost release"');
  }
  return {
    url,
    adminUrl,
    folder,
    shards: cluster.shards.all.length,
    certFile,
    fleets: registry.snapshots().length,
    held,
    demo,
    consoleLink: start.wantsDemo ? consoleLink() : undefined,
    config,
    reload: async (load) => {
      const changed = await reload(load, options);
      audit.note(serverEvent('SIGHUP', { changed: changed.join(' ') }), done);
      publishToken();
    },
  };
}
