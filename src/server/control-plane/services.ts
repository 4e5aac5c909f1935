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

/** The background work on the main thread of the leader, and its services for the admin API. */
export type LocalServices = Awaited<ReturnType<typeof startServices>>;

/** Starts the parts in order of dependence. @throws the error of a part that cannot start, after stopping earlier ones. */
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
  { registry, work, actionJournal, ...params }: ServicesOptions,
  started: { stop(): Promise<void> }[],
) {
  const { actions, forwarders } = work;
  const { shards } = params;
  const consumerWork = await startConsumers(params);
  started.push(consumerWork);
  const { consumers } = consumerWork;
  const forwarderWork = await startForwarders({
    ...params,
    forwarders,
    consumers,
    shards: shards.all.length,
  });
  started.push(forwarderWork);
  const broadcaster = new Broadcaster(params);
  started.push(broadcaster);
  const actionWork = startActions({
    ...params,
    journal: actionJournal,
    actions,
    fleet: (fleetId) => registry.fleet(fleetId),
  });
  return {
    services: {
      actions: actionWork.control,
      consumers: consumerWork.control,
      forwarders: forwarderWork.control,
      broadcasts: new LocalBroadcastService(broadcaster),
    },
    /** Answers requests that wait for records; called before the admin server stops. */
    async stopWaiting(): Promise<void> {
      await forwarderWork.stop();
      consumerWork.stopWaiting();
    },
    /** Called before the shards stop: writes in flight are abandoned, and repeated after the next start. */
    async stop(): Promise<void> {
      await consumerWork.stop();
      await actionWork.stop();
      await broadcaster.stop();
      await work.close();
    },
  };
}
