import type { Log } from '../../core/telemetry/log.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import { startActions } from '../../features/actions/start-actions.ts';
import type { ActionJournal } from '../../features/actions/tables.ts';
import { Broadcaster } from '../../features/broadcasts/delivery/broadcaster.ts';
import { LocalBroadcastService } from '../../features/broadcasts/local-broadcast-service.ts';
import { startConsumers } from '../../features/consumers/start-consumers.ts';
import { startForwarders } from '../../features/forwarders/start-forwarders.ts';
import type { LogFollower } from '../../features/records/log-follower.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import type { MainShards } from '../../threads/main-shards.ts';
import type { RunningConfig } from '../configuration/config.ts';
import type { Declarations } from './declarations.ts';
import { FleetDeletion } from './fleet-deletion.ts';

export interface ServicesOptions {
  declarations: Omit<Declarations, 'close' | 'follow'>;
  journal: Journal;
  /** Closed with the services. */
  actionJournal: ActionJournal;
  fleets: Fleets;
  shards: MainShards;
  follower: LogFollower;
  isBackupRunning: () => boolean;
  config: RunningConfig;
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
  { declarations, actionJournal, ...params }: ServicesOptions,
  started: { stop(): Promise<void> }[],
) {
  const { actions, forwarders } = declarations;
  const { shards } = params;
  const hold = declarations.hold.flag;
  // Consumers and deletions go on while the server is held: the one is asked for, and so was the other.
  const consumerWork = await startConsumers(params);
  started.push(consumerWork);
  const { consumers } = consumerWork;
  const forwarderWork = await startForwarders({
    ...params,
    forwarders,
    consumers,
    hold,
    shards: shards.all.length,
  });
  started.push(forwarderWork);
  const broadcaster = new Broadcaster({ ...params, hold });
  started.push(broadcaster);
  const actionWork = await startActions({
    ...params,
    journal: actionJournal,
    actions,
    hold,
    fleet: (fleetId) => declarations.registry.fleet(fleetId),
    checker: declarations.registry.checker,
  });
  const services = {
    actionWork: actionWork.work,
    actionDeadLetters: actionWork.deadLetters,
    consumers: consumerWork.service,
    forwarderWork: forwarderWork.work,
    forwarderDeadLetters: forwarderWork.deadLetters,
    broadcasts: new LocalBroadcastService(broadcaster),
  };
  const deletion = new FleetDeletion({
    ...params,
    ...declarations,
    services,
    shards: shards.all,
    lateWriteMilliseconds: lateWriteMilliseconds(params.config),
  });
  return {
    services,
    /** Answers requests that wait for records; called before the admin server stops. */
    async stopWaiting(): Promise<void> {
      await forwarderWork.stop();
      consumerWork.stopWaiting();
    },
    /** Called before the shards stop: writes in flight are abandoned, and repeated after the next start. */
    async stop(): Promise<void> {
      await deletion.stop();
      await consumerWork.stop();
      await actionWork.stop();
      await broadcaster.stop();
    },
  };
}

/** Each write of a database waits for its turn once, and has five attempts of a connection and an answer. */
const lateWriteTimeouts = 12;

/** The time in which writes of other nodes have ended; an embedded store has none, and takes its own in order. */
function lateWriteMilliseconds({ store, databaseTimeoutMilliseconds }: RunningConfig): number {
  return store.engine === 'postgres' ? lateWriteTimeouts * databaseTimeoutMilliseconds : 0;
}
