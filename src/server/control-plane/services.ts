import type { Log } from '../../core/telemetry/log.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import { startActions } from '../../features/actions/open.ts';
import type { ActionJournal } from '../../features/actions/tables.ts';
import { LocalBroadcastService } from '../../features/broadcasts/control.ts';
import { Broadcaster } from '../../features/broadcasts/delivery/broadcaster.ts';
import { startConsumers } from '../../features/consumers/open.ts';
import { startForwarders } from '../../features/forwarders/open.ts';
import type { LogReader } from '../../features/records/log-reader.ts';
import type { ControlJournal } from '../../maintenance/environments.ts';
import type { MainShards } from '../../threads/shards.ts';
import type { Config } from '../configuration/config.ts';
import type { DeclaredWork } from './declarations.ts';

export interface ServicesOptions {
  registry: Registry;
  work: DeclaredWork;
  journal: ControlJournal;
  /** Closed with the services. */
  actionJournal: ActionJournal;
  fleets: Fleets;
  shards: MainShards;
  reader: LogReader;
  isBackupRunning: () => boolean;
  config: Config;
  log: Log;
}

/** What works by itself on the main thread, of one node of all, besides the admin API, which asks it. */
export type Services = Awaited<ReturnType<typeof startServices>>;

/** In order of dependence. @throws what a part cannot start for; those before it are stopped then. */
export async function startServices(options: ServicesOptions) {
  const started: { stop(): Promise<void> }[] = [];
  try {
    return await startParts(options, started);
  } catch (error) {
    for (const part of started.reverse()) await part.stop();
    throw error;
  }
}

async function startParts(
  { registry, work, actionJournal, ...given }: ServicesOptions,
  started: { stop(): Promise<void> }[],
) {
  const { actions, forwarders } = work;
  const { shards } = given;
  const reading = await startConsumers(given);
  started.push(reading);
  const { consumers } = reading;
  const forwarding = await startForwarders({ ...given, forwarders, consumers, shards: shards.all.length });
  started.push(forwarding);
  const broadcaster = new Broadcaster(given);
  started.push(broadcaster);
  const acting = startActions({
    ...given,
    journal: actionJournal,
    actions,
    fleet: (fleetId) => registry.fleet(fleetId),
  });
  return {
    /** What the admin API asks. */
    controls: {
      actions: acting.control,
      consumers: reading.control,
      forwarders: forwarding.control,
      broadcasts: new LocalBroadcastService(broadcaster),
    },
    /** Before the admin server ends: requests that wait for records are answered. */
    async stopWaiting(): Promise<void> {
      await forwarding.stop();
      reading.stopWaiting();
    },
    /** Before the shards: what is on its way to them is given up, and goes again after the next start. */
    async stop(): Promise<void> {
      await reading.stop();
      await acting.stop();
      await broadcaster.stop();
      await work.close();
    },
  };
}
