import { sleep } from '../core/async.ts';
import { createLog } from '../core/telemetry/log.ts';
import { outliveRejections } from '../core/telemetry/rejections.ts';
import { done, serverEvent } from '../features/audit/server-event.ts';
import { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import { type EffectiveConfig, type RunningConfig, runningConfig } from './configuration/config.ts';
import { createDemo, type Demo } from './demo.ts';
import { enteredByOthers } from './entered-by-others.ts';
import { Lifecycle } from './lifecycle.ts';
import { checkAdminAddress, type OpenedAdminListener, openAdminListener } from './open-admin-listener.ts';
import { Readiness, stopping } from './readiness.ts';
import { reload } from './reload.ts';
import { type DevicesStart, startDeviceSide } from './start-devices.ts';
import { startOperatorSide } from './start-operators.ts';

/** A running server, as `serve` reports it. */
export interface RunningServer {
  url: string;
  adminUrl: string;
  folder: DataFolder;
  /** Number of LMDB shards or of databases. */
  shards: number;
  certFile: string;
  fleets: number;
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
  { values, sources }: EffectiveConfig,
  signal: AbortSignal,
  wantsDemo: boolean,
): Promise<RunningServer> {
  const config = runningConfig(values);
  const log = createLog(config.settings.current.logLevel);
  checkAdminAddress(config);
  const { engine } = config.store;
  const folder = DataFolder.open(config.data, engine, config.shards);
  const openness = enteredByOthers(folder.path);
  if (openness !== undefined) log.warn(openness);
  const readiness = new Readiness();
  let opened: OpenedAdminListener | undefined;
  // Released last, whatever else has started by then.
  const release = async (): Promise<void> => {
    await opened?.adminCertificate?.close();
    await opened?.adminListener.close();
    folder.close();
  };
  try {
    const shards = sources.shards === 'default' && engine === 'lmdb' ? folder.shards : config.shards;
    opened = await openAdminListener(config, readiness, log);
    const running = await startIn({
      folder,
      shards,
      config,
      log,
      signal,
      readiness,
      ...opened,
      wantsDemo,
    });
    return {
      ...running,
      stop: async (cause, hurry) => {
        log.info({ cause, drainSeconds: config.settings.current.drainSeconds }, 'stopping');
        await running.stop(hurry);
        await release();
        log.info('stopped');
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

type StartedParts = Omit<RunningServer, 'stop'> & { stop(hurry: AbortSignal): Promise<void> };

/** Time for databases to close in order, after requests in flight; everything answered is already committed. */
const databaseCloseSeconds = 10;

/** Starts all parts within the folder and the listener. If a start fails, stops those already started. */
async function startIn(params: Omit<DevicesStart, 'lifecycle'>): Promise<StartedParts> {
  const { config, log, readiness } = params;
  const lifecycle = new Lifecycle();
  const stop = async (): Promise<void> => {
    readiness.phase = stopping;
    if (config.store.engine === 'postgres') {
      const endMs = (config.settings.current.shutdownSeconds + databaseCloseSeconds) * 1_000;
      setTimeout(() => {
        const msg = 'database does not answer; exiting without closing it';
        log.warn({ part: lifecycle.last }, msg);
        process.exit();
      }, endMs).unref();
    }
    await lifecycle.stop();
  };
  try {
    return {
      ...(await startParts({ ...params, lifecycle })),
      stop: async (hurry) => {
        readiness.phase = stopping;
        await sleep(config.settings.current.drainSeconds * 1_000, hurry);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(start: DevicesStart): Promise<Omit<RunningServer, 'stop'>> {
  const { folder, shards, config, log, readiness, adminCertificate } = start;
  const shardsBefore = folder.shards;
  const devices = await startDeviceSide(start);
  const { adminUrl, publishToken, consoleLink } = await startOperatorSide(start, devices);
  const { url, certFile, controlPlane, cluster, certificate } = devices;
  const { registry, audit } = controlPlane;
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
  audit.note(serverEvent('START', { shards, shards_before: shardsBefore }), done);
  readiness.phase = undefined;
  outliveRejections(log);
  readiness.watch(cluster);
  cluster.watchStalls();
  const certificates = adminCertificate === undefined ? [certificate] : [certificate, adminCertificate];
  const options = { config, shards, tlsFolder: folder.tlsFolder, cluster, certificates, log };
  log.info({ url, adminUrl, data: folder.path, shards: cluster.shards.all.length }, 'ready');
  return {
    url,
    adminUrl,
    folder,
    shards: cluster.shards.all.length,
    certFile,
    fleets: registry.snapshots().length,
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
