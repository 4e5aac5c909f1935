import type { Bootstrap } from '../admin-api/auth/authorization.ts';
import type { ConsoleCodes } from '../admin-api/console/console-codes.ts';
import { ConsoleFiles } from '../admin-api/console/console-files.ts';
import { DeviceCounts } from '../admin-api/monitoring/device-counts.ts';
import { FleetRefusals } from '../admin-api/monitoring/fleet-refusals.ts';
import { PulseHistory } from '../admin-api/monitoring/pulse-history.ts';
import { countedRequests, ServerHour } from '../admin-api/monitoring/server-hour.ts';
import { BulkWrites } from '../admin-api/request/bulk-writes.ts';
import { activeSinceMs } from '../admin-api/request/device-state.ts';
import { connectedCount } from '../admin-api/routes/fleet-counts.ts';
import { joinFleets, joinRefusals, type RefusalLog, Refusals } from '../domain/devices/refusals.ts';
import { ActionDeclarations } from '../features/actions/action-declarations.ts';
import { ForwarderDeclarations } from '../features/forwarders/forwarder-declarations.ts';
import type { LogFollower } from '../features/records/log-follower.ts';
import { Records } from '../features/records/records.ts';
import { DeviceSeries } from '../features/series/device-series.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import { deviceEndpointOf } from './certificates/device-endpoint.ts';
import type { RemoteServices } from './control-plane/remote-services.ts';
import type { DeviceSide, DevicesStart } from './start-devices.ts';

/** Folder that the build puts the console into. */
const consoleFolder = new URL('../console/', import.meta.url).pathname;

/** Parts that only operators have, besides those of the device side. */
interface OperatorsOwn {
  services: RemoteServices;
  follower: LogFollower;
  bootstrap: Bootstrap;
  consoleCodes: ConsoleCodes;
}

/** All that routes and metrics are given some of. */
export type OperatorParts = ReturnType<typeof operatorParts>;

/** Brings together what routes and metrics are made of. */
export function operatorParts(
  { config, configuration, adminListener, folder, log, readiness }: DevicesStart,
  { port, controlPlane, backups, fleets, cluster, certificates, acme, traces }: DeviceSide,
  { services, follower, bootstrap, consoleCodes }: OperatorsOwn,
) {
  const { registry, tokens, claimTokens, hold, audit, actions, forwarders } = controlPlane;
  const { shards, metrics, connections } = cluster;
  const refusals = refusalLog(cluster);
  const declaring = {
    config,
    follower,
    fleet: (fleetId: string) => registry.fleet(fleetId),
    checker: registry.checker,
  };
  const counts = new DeviceCounts(shards.all);
  const pulses = pulseHistory(cluster, counts, registry, config);
  return {
    ...services,
    counts,
    pulses,
    hour: new ServerHour(() => countedRequests(metrics)),
    talkersOf: (fleetId: string) => cluster.talkers(fleetId),
    actions: new ActionDeclarations({ ...declaring, actions, work: services.actionWork }),
    forwarders: new ForwarderDeclarations({ ...declaring, forwarders, work: services.forwarderWork }),
    series: new DeviceSeries({ follower, shards, fleets }),
    records: new Records({ follower, shards, config }),
    bootstrap,
    bulkWrites: new BulkWrites(),
    consoleCodes,
    config,
    configuration,
    deviceEndpoint: (host: string) => deviceEndpointOf({ config, tlsFolder: folder.tlsFolder, port }, host),
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
    queueDepth: (shard: number) => cluster.queueDepth(shard),
    connectedOf: (shard: number) => shards.connectedOf(shard) ?? metrics[shard]?.connectedDevices ?? 0,
    devicesOf: (shard: number) => shards.devicesOf(shard),
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
    refusals,
    refused: new FleetRefusals({ refusals, shards }),
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
    // What senders of mail are refused says nothing of a device.
    ofFleet: async (fleetId, sinceMs) => joinFleets(await cluster.refusalsOfFleet(fleetId, sinceMs), sinceMs),
    note: (device, refused) => own.note(device, refused),
  };
}

/** Keeps what devices do by fleet: their requests as the workers count them, and how many there are. */
function pulseHistory(
  cluster: WorkerPool,
  counts: DeviceCounts,
  registry: DeviceSide['controlPlane']['registry'],
  config: DevicesStart['config'],
): PulseHistory {
  return new PulseHistory({
    takePulses: () => cluster.takePulses(),
    devicesOf: async (fleetId) => {
      const { fleet } = registry.fleet(fleetId);
      const active = counts.active(fleetId, activeSinceMs(fleet, config)).value;
      return { connected: await connectedCount(cluster.shards, fleetId), active: await active };
    },
  });
}
