import type { AdminListener } from '../admin-api/server/admin-listener.ts';
import { sleep } from '../core/async.ts';
import { createLog } from '../core/telemetry/log.ts';
import { outliveRejections } from '../core/telemetry/rejections.ts';
import { done, serverEvent } from '../features/audit/server-event.ts';
import { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import type { Config, EffectiveConfig } from './configuration/config.ts';
import { createDemo, type Demo } from './demo.ts';
import { enteredByOthers } from './entered-by-others.ts';
import { Lifecycle } from './lifecycle.ts';
import { checkAdminAddress, openAdminListener } from './open-admin-listener.ts';
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
  /** Configuration in use; changed in place by `reload`. */
  config: Config;
  /** Applies changes of the configuration that are possible at run time, and logs them. */
  reload(load: () => EffectiveConfig): Promise<void>;
  /**
   * Drains for `drainSeconds`, or until the signal; then finishes requests in flight and writes everything to disk.
   */
  stop(hurry: AbortSignal): Promise<void>;
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
  const config = { ...values };
  const log = createLog(config.logLevel);
  checkAdminAddress(config);
  const { engine } = config.store;
  const folder = DataFolder.open(config.data, engine, config.shards);
  const openness = enteredByOthers(folder.path);
  if (openness !== undefined) log.warn(openness);
  const readiness = new Readiness();
  let adminListener: AdminListener | undefined;
  // Released last, whatever else has started by then.
  const release = async (): Promise<void> => {
    await adminListener?.close();
    folder.close();
  };
  try {
    const shards = sources.shards === 'default' && engine === 'lmdb' ? folder.shards : config.shards;
    adminListener = await openAdminListener(config, readiness);
    const running = await startIn({
      folder,
      shards,
      config,
      log,
      signal,
      readiness,
      adminListener,
      wantsDemo,
    });
    return {
      ...running,
      stop: async (hurry) => {
        await running.stop(hurry);
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Time for databases to close in order, after requests in flight; everything answered is already committed. */
const databaseCloseSeconds = 10;

/** Starts all parts within the folder and the listener. If a start fails, stops those already started. */
async function startIn(params: Omit<DevicesStart, 'lifecycle'>): Promise<RunningServer> {
  const { config, log, readiness } = params;
  const lifecycle = new Lifecycle();
  const stop = async (): Promise<void> => {
    readiness.phase = stopping;
    if (config.store.engine === 'postgres') {
      const endMs = (config.shutdownSeconds + databaseCloseSeconds) * 1_000;
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
        await sleep(config.drainSeconds * 1_000, hurry);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(start: DevicesStart): Promise<Omit<RunningServer, 'stop'>> {
  const { folder, shards, config, log, readiness } = start;
  const shardsBefore = folder.shards;
  const devices = await startDeviceSide(start);
  const { adminUrl, publishToken } = await startOperatorSide(start, devices);
  const { url, certFile, controlPlane, cluster, certificate } = devices;
  const { registry, audit } = controlPlane;
  publishToken();
  const limits = { ttlSeconds: config.mailTtlSeconds, mailboxMailsMax: config.mailboxMailsMax };
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
  const options = { config, shards, tlsFolder: folder.tlsFolder, cluster, certificate, log };
  log.info({ url, adminUrl, data: folder.path, shards: cluster.shards.all.length }, 'ready');
  return {
    url,
    adminUrl,
    folder,
    shards: cluster.shards.all.length,
    certFile,
    fleets: registry.snapshots().length,
    demo,
    config,
    reload: async (load) => {
      const changed = await reload(load, options);
      audit.note(serverEvent('SIGHUP', { changed: changed.join(' ') }), done);
      publishToken();
    },
  };
}
