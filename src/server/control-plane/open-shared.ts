import type { Log } from '../../core/telemetry/log.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import { actionTables } from '../../features/actions/tables.ts';
import { PostgresAudit } from '../../features/audit/postgres-audit.ts';
import {
  actionJournalOf,
  controlJournalOf,
  controlTables,
  registryTables,
} from '../../maintenance/environments.ts';
import { Leader, leaderLease } from '../../nodes/leader.ts';
import { LeaderStore } from '../../nodes/leader-store.ts';
import { ReplicatedStore } from '../../nodes/replicated-store.ts';
import { RpcClient } from '../../nodes/rpc-client.ts';
import { RpcServer } from '../../nodes/rpc-server.ts';
import { Database } from '../../storage/postgres/connection/database.ts';
import { checkServable } from '../../storage/postgres/schema/migrate.ts';
import { versionsOfNodes } from '../../storage/postgres/streams/membership.ts';
import type { RunningConfig } from '../configuration/config.ts';
import type { ControlPlane, LeaderWork, LeaderWorkOptions } from './control-plane.ts';
import { type Declarations, openDeclarations } from './declarations.ts';
import { methodsOf, type RemoteServices, remoteServices } from './remote-services.ts';
import type { LocalServices } from './services.ts';

export interface OpenSharedOptions {
  /** URL of the first database of the store. */
  url: string;
  /** Id of this node, for as long as it runs. */
  node: string;
  config: RunningConfig;
  log: Log;
}

/** The running work of the leader. */
interface RunningWork {
  local: LocalServices;
  rpcServer: RpcServer;
  stop(): Promise<void>;
}

/**
 * Opens the control plane in a database that all nodes share: each node has the declarations in memory, and background
 * work runs on the leader, which the others call.
 * @throws OperatorError for tables of another version, ApiError unavailable.
 */
export async function openShared(options: OpenSharedOptions): Promise<ControlPlane> {
  const { url, config, log } = options;
  const database = new Database({
    url,
    connectionsMax: config.databaseConnectionsMax,
    timeoutMilliseconds: config.databaseTimeoutMilliseconds,
    log,
  });
  let stored: ReplicatedStore;
  try {
    await checkServable(database);
    stored = await ReplicatedStore.open({ store: 'registry', tables: registryTables, database, log });
  } catch (error) {
    await database.close();
    throw error;
  }
  await logVersions(database, log);
  const declarations = openDeclarations(stored, config, log);
  stored.onChange((changes) => declarations.follow(changes));
  const audit = new PostgresAudit(database, config, log);
  const rpcClient = new RpcClient({ database, log });
  return {
    ...declarations,
    audit,
    programVersions: () => versionsOfNodes(database).catch(() => [programVersion()]),
    startWork: (params) => startLeaderWork({ ...options, database, stored, declarations, rpcClient }, params),
    async close() {
      await rpcClient.close();
      await audit.close();
      await declarations.close();
      await database.close();
    },
  };
}

/** Says that this node joins nodes of other versions: an upgrade that is under way, or was forgotten. */
async function logVersions(database: Database, log: Log): Promise<void> {
  const versions = new Set([...(await versionsOfNodes(database)), programVersion()]);
  if (versions.size > 1) log.warn(`nodes of versions ${[...versions].sort().join(' and ')}`);
}

/** Options for the leader's work, for whenever this node is the leader. */
interface LeaderOptions extends OpenSharedOptions {
  database: Database;
  stored: ReplicatedStore;
  declarations: Declarations;
  rpcClient: RpcClient;
}

async function startLeaderWork(options: LeaderOptions, params: LeaderWorkOptions): Promise<LeaderWork> {
  const { database, node, rpcClient, config, log } = options;
  // Imported before this node may become the leader, which others then wait for.
  const services = await import('./services.ts');
  const leader = new Leader<RunningWork>({
    database,
    holder: node,
    open: (onLost) => openLeaderWork(options, services, params, onLost),
    close: (running) => running.stop(),
    log,
  });
  await leader.start();
  const remote = remoteServices(rpcClient, config.settings);
  return {
    services: servicesOf(() => leader.running?.local.services ?? remote),
    async stopWaiting() {
      await leader.running?.local.stopWaiting();
    },
    stop: () => leader.stop(),
  };
}

/** Starts the work once this node has the lease, and serves the calls of other nodes. */
async function openLeaderWork(
  options: LeaderOptions,
  { startServices }: typeof import('./services.ts'),
  params: LeaderWorkOptions,
  onLost: () => void,
): Promise<RunningWork> {
  const { database, stored, declarations, node, config, log } = options;
  await stored.catchUp();
  // This node may have missed some that it could not read: what they have done must not be taken for that of deleted ones.
  for (const declared of [declarations.actions, declarations.forwarders]) declared.load();
  const leadership = { database, lease: { name: leaderLease, holder: node }, onLost };
  const control = await LeaderStore.open({ store: 'control', tables: controlTables, ...leadership });
  const actions = await LeaderStore.open({ store: 'actions', tables: actionTables, ...leadership }).catch(
    closing(control),
  );
  const local = await startServices({
    ...params,
    declarations,
    journal: controlJournalOf(control),
    actionJournal: actionJournalOf(actions),
    isBackupRunning: () => false,
    config,
    log,
  }).catch(closing(control, actions));
  // Catches up before each call, because the calling node may rely on a declaration it has just made.
  const methods = new Map(
    [...methodsOf(local.services)].map(([name, method]) => [
      name,
      async (...args: Parameters<typeof method>) => {
        await stored.catchUp();
        return method(...args);
      },
    ]),
  );
  const rpcServer = new RpcServer({ database, methods, log });
  const stop = async (): Promise<void> => {
    await local.stopWaiting();
    await rpcServer.close();
    await local.stop();
    await control.close();
  };
  return { local, rpcServer, stop };
}

/** Closes stores when the work could not start, because the next start must be able to open them. */
function closing(...opened: readonly LeaderStore[]): (error: unknown) => Promise<never> {
  return async (error) => {
    for (const tables of opened) await tables.close();
    throw error;
  };
}

/** Resolves the services on each call, because the leader may change between two requests. */
function servicesOf(find: () => RemoteServices): RemoteServices {
  const of = <N extends keyof RemoteServices>(name: N): RemoteServices[N] =>
    new Proxy({} as RemoteServices[N], {
      get(_, key) {
        const service = find()[name];
        const member: unknown = Reflect.get(service, key, service);
        return typeof member === 'function' ? member.bind(service) : member;
      },
    });
  return {
    actionWork: of('actionWork'),
    actionDeadLetters: of('actionDeadLetters'),
    broadcasts: of('broadcasts'),
    consumers: of('consumers'),
    forwarderWork: of('forwarderWork'),
    forwarderDeadLetters: of('forwarderDeadLetters'),
  };
}
