import { BootstrapToken } from '../admin-api/auth/bootstrap-token.ts';
import { ConsoleCodes } from '../admin-api/console/console-codes.ts';
import { bootstrapPrincipal } from '../admin-api/request/scope.ts';
import { createAdminServer } from '../admin-api/server/server.ts';
import { bracketed } from '../core/address.ts';
import { LogFollower } from '../features/records/log-follower.ts';
import type { DataFolder } from '../storage/lmdb/environment/data-folder.ts';
import { adminHost } from './certificates/certificate.ts';
import { operatorParts } from './operator-parts.ts';
import { featureMetrics, operatorRoutes } from './operator-routes.ts';
import type { DeviceSide, DevicesStart } from './start-devices.ts';

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
  const consoleCodes = new ConsoleCodes();
  const parts = operatorParts(start, devices, { services: work.services, follower, bootstrap, consoleCodes });
  lifecycle.start('pulse', () => {
    parts.pulses.close();
    parts.hour.close();
  });
  const { app, handler, scrape } = await createAdminServer({
    ...parts,
    routes: operatorRoutes(parts),
    figures: parts,
    metrics: featureMetrics(parts),
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
    if (!bootstrap.isOn || (parts.consoleFiles?.isEmpty ?? true)) return undefined;
    const { code } = consoleCodes.create(bootstrapPrincipal, linkSeconds);
    return `${urlNow()}/console/#code=${code}`;
  };
  // Its URL may name a host of the certificate.
  adminListener.onRenewal(publishToken);
  return { adminUrl: urlNow(), publishToken, consoleLink };
}

function storedToken(folder: DataFolder): string | undefined {
  const stored = folder.readAdminFile() as { token?: unknown } | undefined;
  return typeof stored?.token === 'string' && stored.token.length >= 32 ? stored.token : undefined;
}
