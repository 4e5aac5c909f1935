import { BootstrapToken } from '../admin-api/auth/bootstrap-token.ts';
import type { AdminContext } from '../admin-api/request/context.ts';
import { bracketed, parseHostPort } from '../core/host-port.ts';
import { LogReader } from '../features/records/log-reader.ts';
import { Records } from '../features/records/records.ts';
import type { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import type { RemoteServices } from './control-plane/remote-services.ts';
import type { DeviceSide, DevicesStart } from './start-devices.ts';

/** What operators are answered by. */
export interface OperatorSide {
  adminUrl: string;
  /** Leaves in the data folder what commands on this machine find the server by. */
  publishToken(): void;
}

/** The work that goes on by itself, and the admin API. */
export async function startOperatorSide(start: DevicesStart, devices: DeviceSide): Promise<OperatorSide> {
  const { lifecycle, config, log, door, folder } = start;
  const { keeping, backups, fleets, cluster } = devices;
  const bootstrap = new BootstrapToken(knownToken(folder), config.bootstrapToken);
  // Loaded here: half of a start goes into it, and devices are answered meanwhile.
  const { createAdminServer } = await import('../admin-api/server/server.ts');
  const reader = new LogReader(cluster.shards.all, log);
  const work = await keeping.startWork({ fleets, shards: cluster.shards, reader });
  lifecycle.start('work', () => work.stop());
  lifecycle.start('backups', () => backups.close());
  const { app, scrape } = await createAdminServer({
    ...contextOf(start, devices),
    ...work.controls,
    bootstrap,
    records: new Records({ reader, shards: cluster.shards, config }),
  });
  lifecycle.start('admin API', async () => {
    await work.stopWaiting();
    await Promise.all([door.drain(), app.close()]);
  });
  const adminUrl = `http://${bracketed(parseHostPort(config.admin).host)}:${door.port}`;
  door.attach(app.routing, scrape);
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
    if (token !== undefined || keeping.tokens.hasAdmin) return;
    log.warn(
      'nobody can manage this server: there is no API token with the scope admin, and bootstrapToken is false',
    );
  };
  return { adminUrl, publishToken };
}

/** What the admin API is given of the device side. */
function contextOf(
  { config, log, readiness }: DevicesStart,
  { keeping, backups, fleets, cluster, traces }: DeviceSide,
): Omit<AdminContext, keyof RemoteServices | 'records' | 'bootstrap'> {
  const { registry, tokens, claimTokens, audit } = keeping;
  const { shards, metrics, connections } = cluster;
  return {
    config,
    tokens,
    audit,
    claimTokens,
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
    traces,
    activity: { sizes: () => shards.sizes(), talkers: () => cluster.talkers() },
    backups,
    log,
  };
}

function knownToken(folder: DataFolder): string | undefined {
  const known = folder.readAdminFile() as { token?: unknown } | undefined;
  return typeof known?.token === 'string' && known.token.length >= 32 ? known.token : undefined;
}
