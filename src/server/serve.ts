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
  let door: AdminListener | undefined;
  // Held from first to last, whatever else has started by then.
  const release = async (): Promise<void> => {
    await door?.close();
    folder.close();
  };
  try {
    const shards = sources.shards === 'default' && engine === 'lmdb' ? folder.shards : config.shards;
    door = await openAdminListener(config, readiness);
    const running = await startIn({ folder, shards, config, log, signal, readiness, door, wantsDemo });
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

/** What databases may take to end in order, beyond requests in flight: all that was answered is in them already. */
const farewellSeconds = 10;

/** All that runs in the folder and behind the door: what a start that fails has started is stopped again. */
async function startIn(given: Omit<DevicesStart, 'lifecycle'>): Promise<RunningServer> {
  const { config, log, readiness } = given;
  const lifecycle = new Lifecycle();
  const stop = async (): Promise<void> => {
    readiness.phase = stopping;
    if (config.store.engine === 'postgres') {
      const endMs = (config.shutdownSeconds + farewellSeconds) * 1_000;
      setTimeout(() => {
        const msg = 'a database does not answer: the server ends without taking its leave of it';
        log.warn({ part: lifecycle.last }, msg);
        process.exit();
      }, endMs).unref();
    }
    await lifecycle.stop();
  };
  try {
    return {
      ...(await startParts({ ...given, lifecycle })),
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
  const { url, certFile, keeping, cluster, certificate } = devices;
  const { registry, audit } = keeping;
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
