import { BootstrapToken } from '../admin-api/auth/bootstrap-token.ts';
import { ConsoleCodes } from '../admin-api/console/console-codes.ts';
import { ConsoleFiles } from '../admin-api/console/console-files.ts';
import type { AdminContext } from '../admin-api/request/context.ts';
import { bootstrapPrincipal } from '../admin-api/request/scope.ts';
import { createAdminServer } from '../admin-api/server/server.ts';
import { bracketed } from '../core/address.ts';
import { joinRefusals, type RefusalLog, Refusals } from '../domain/devices/refusals.ts';
import { ActionDeclarations } from '../features/actions/control.ts';
import { ForwarderDeclarations } from '../features/forwarders/control.ts';
import { LogFollower } from '../features/records/log-follower.ts';
import { Records } from '../features/records/records.ts';
import { DeviceSeries } from '../features/series/device-series.ts';
import type { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import { adminHost } from './certificates/certificate.ts';
import type { RemoteServices } from './control-plane/remote-services.ts';
import type { DeviceSide, DevicesStart } from './start-devices.ts';

/** Folder that the build puts the console into. */
const consoleFolder = new URL('../console/', import.meta.url).pathname;

/** Lifetime of the link printed at a first start, for a person who reads what is around it. */
const linkSeconds = 600;

/** The parts of a server that serve operators. */
export interface OperatorSide {
  adminUrl: string;
  /** Writes the address and the token to the data folder, where commands on this machine find them. */
  publishToken(): void;
  /** Makes a link to the console that works once, as the bootstrap token; undefined if there is none to make. */
  consoleLink(): string | undefined;
}

/** Starts the background work and the admin API. */
export async function startOperatorSide(start: DevicesStart, devices: DeviceSide): Promise<OperatorSide> {
  const { lifecycle, config, log, adminListener, folder } = start;
  const { controlPlane, backups, fleets, cluster } = devices;
  const bootstrap = new BootstrapToken(storedToken(folder), config.settings.current.bootstrapToken);
  const follower = new LogFollower(cluster.shards.all, log);
  const work = await controlPlane.startWork({ fleets, shards: cluster.shards, follower });
  lifecycle.start('work', () => work.stop());
  lifecycle.start('backups', () => backups.close());
  const { actions, forwarders, registry } = controlPlane;
  const declaring = {
    config,
    follower,
    fleet: (fleetId: string) => registry.fleet(fleetId),
    checker: registry.checker,
  };
  const consoleCodes = new ConsoleCodes();
  const context = contextOf(start, devices);
  const { app, handler, scrape } = await createAdminServer({
    ...context,
    consoleCodes,
    ...work.services,
    actions: new ActionDeclarations({ ...declaring, actions, work: work.services.actionWork }),
    forwarders: new ForwarderDeclarations({ ...declaring, forwarders, work: work.services.forwarderWork }),
    bootstrap,
    series: new DeviceSeries({ follower, shards: cluster.shards }),
    records: new Records({ follower, shards: cluster.shards, config }),
  });
  lifecycle.start('admin API', async () => {
    await work.stopWaiting();
    await Promise.all([adminListener.drain(), app.close()]);
  });
  const urlNow = (): string =>
    `${adminListener.scheme}://${bracketed(adminHost(config, folder.tlsFolder))}:${adminListener.port}`;
  adminListener.attach(handler, scrape);
  const publishToken = (): void => {
    bootstrap.turn(config.settings.current.bootstrapToken);
    const { token } = bootstrap;
    if (token === undefined) {
      controlPlane.tokens.revokeBootstrapSessions().catch((err: unknown) => {
        log.error({ err }, 'removing the sessions of the bootstrap token failed; they are refused');
      });
    }
    const adminUrl = urlNow();
    try {
      folder.writeAdminFile({ url: adminUrl, ...(token !== undefined && { token }) });
    } catch (err) {
      log.error({ err }, `writing ${folder.adminFile} failed; commands need --admin ${adminUrl} --token T`);
    }
    if (token !== undefined || controlPlane.tokens.hasAdmin) return;
    log.warn('nobody can manage this server: no API token has the scope admin, and bootstrapToken is false');
  };
  const consoleLink = (): string | undefined => {
    if (!bootstrap.isOn || (context.consoleFiles?.isEmpty ?? true)) return undefined;
    const { code } = consoleCodes.create(bootstrapPrincipal, linkSeconds);
    return `${urlNow()}/console/#code=${code}`;
  };
  // Its URL may name a host of the certificate.
  adminListener.onRenewal(publishToken);
  return { adminUrl: urlNow(), publishToken, consoleLink };
}

/** Builds the admin API's context from the device side. */
function contextOf(
  { config, configuration, adminListener, log, readiness }: DevicesStart,
  { controlPlane, backups, fleets, cluster, certificates, acme, traces }: DeviceSide,
): Omit<
  AdminContext,
  keyof RemoteServices | 'actions' | 'forwarders' | 'records' | 'series' | 'bootstrap' | 'consoleCodes'
> {
  const { registry, tokens, claimTokens, hold, audit } = controlPlane;
  const { shards, metrics, connections } = cluster;
  return {
    config,
    configuration,
    allowedHosts: () => adminListener.allowedHosts,
    tokens,
    audit,
    claimTokens,
    hold,
    registry,
    fleets,
    shards,
    metrics,
    connections,
    queueDepth: (shard) => cluster.queueDepth(shard),
    connectedOf: (shard) => shards.connectedOf(shard) ?? metrics[shard]?.connectedDevices ?? 0,
    devicesOf: (shard) => shards.devicesOf(shard),
    stalls: () => cluster.stalls(),
    notReady: () => readiness.reasons(),
    programVersions: () => controlPlane.programVersions(),
    certificates,
    acme,
    traces,
    activity: {
      sizes: () => shards.sizes(),
      diskFreeBytes: () => shards.diskFreeBytes(),
      topTalkers: () => cluster.talkers(),
    },
    lockouts: cluster.lockouts,
    refusals: refusalLog(cluster),
    watched: cluster.watched,
    backups,
    consoleFiles: config.console ? ConsoleFiles.read(consoleFolder) : undefined,
    log,
  };
}

/** Joins what the workers have refused with what the admin API itself has. */
function refusalLog(cluster: WorkerPool): RefusalLog {
  const own = new Refusals();
  return {
    of: async (device) => joinRefusals([...(await cluster.refusalsOf(device)), own.of(device)]),
    note: (device, refused) => own.note(device, refused),
  };
}

function storedToken(folder: DataFolder): string | undefined {
  const stored = folder.readAdminFile() as { token?: unknown } | undefined;
  return typeof stored?.token === 'string' && stored.token.length >= 32 ? stored.token : undefined;
}
