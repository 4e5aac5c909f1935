import { join } from 'node:path';
import type { Log } from '../../core/telemetry/log.ts';
import { registryTables } from '../../declarations/registry.ts';
import { actionTables } from '../../features/actions/tables.ts';
import { PostgresAudit } from '../../features/audit/postgres-audit.ts';
import { actionJournalOf, controlJournalOf, controlTables } from '../../maintenance/environments.ts';
import { Leader, leaderLease } from '../../nodes/leader.ts';
import { LeaderStore } from '../../nodes/leader-store.ts';
import { ReplicatedStore } from '../../nodes/replicated-store.ts';
import { RpcClient } from '../../nodes/rpc-client.ts';
import { RpcServer } from '../../nodes/rpc-server.ts';
import { Database } from '../../storage/postgres/connection/database.ts';
import { checkVersion } from '../../storage/postgres/schema/migrate.ts';
import type { Config } from '../configuration/config.ts';
import type { ControlPlane, LeaderWork, LeaderWorkOptions } from './control-plane.ts';
import { type Declarations, openDeclarations, openDeclaredWork } from './declarations.ts';
import { methodsOf, type RemoteServices, remoteServices } from './remote-services.ts';
import type { Services } from './services.ts';

export interface OpenSharedOptions {
  /** Of the first database of the store. */
  url: string;
  /** For the mirrors of this node. */
  folder: string;
  /** This node among all, for as long as it runs. */
  node: string;
  config: Config;
  log: Log;
}

/** Of what runs where the jobs are. */
interface RunningJobs {
  services: Services;
  answerer: RpcServer;
  stop(): Promise<void>;
}

/**
 * In a database that all nodes share: what operators declare is mirrored on each, and what works by itself is on one
 * of them, which the others ask.
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
    await checkVersion(database);
    const tables = mirrorOf(database, options, 'registry', registryTables);
    stored = await ReplicatedStore.open({ ...tables, log });
  } catch (error) {
    await database.close();
    throw error;
  }
  const declarations = openDeclarations(stored, config, log);
  const { registry, tokens, claimTokens } = declarations;
  stored.onChange(async (changes) => {
    tokens.follow(changes);
    claimTokens.follow(changes);
    await registry.follow(changes);
  });
  const audit = new PostgresAudit(database, config, log);
  const caller = new RpcClient({ database, log });
  return {
    ...declarations,
    audit,
    startWork: (given) => startJobs({ ...options, database, stored, registry, caller }, given),
    async close() {
      await caller.close();
      await audit.close();
      await declarations.close();
      await database.close();
    },
  };
}

/** Of this node: what the jobs work with, whenever they run here. */
interface JobsOptions extends OpenSharedOptions {
  database: Database;
  stored: ReplicatedStore;
  registry: Declarations['registry'];
  caller: RpcClient;
}

async function startJobs(options: JobsOptions, given: LeaderWorkOptions): Promise<LeaderWork> {
  const { database, node, caller, config, log } = options;
  // Before it may be this node's turn, which others then wait for.
  const services = await import('./services.ts');
  const jobs = new Leader<RunningJobs>({
    database,
    holder: node,
    open: (onLost) => openJobs(options, services, given, onLost),
    close: (running) => running.stop(),
    log,
  });
  await jobs.start();
  const remote = remoteServices(caller, config.requestTimeoutSeconds * 1_000);
  return {
    controls: whereverTheyAre(() => jobs.running?.services.controls ?? remote),
    async stopWaiting() {
      await jobs.running?.services.stopWaiting();
    },
    stop: () => jobs.stop(),
  };
}

/** This node has the lease: the jobs begin, and other nodes are answered what they ask of them. */
async function openJobs(
  options: JobsOptions,
  { startServices }: typeof import('./services.ts'),
  given: LeaderWorkOptions,
  onLost: () => void,
): Promise<RunningJobs> {
  const { database, stored, registry, node, config, log } = options;
  await stored.catchUp();
  const held = { lease: { name: leaderLease, holder: node }, onLost };
  const control = await LeaderStore.open({
    ...mirrorOf(database, options, 'control', controlTables),
    ...held,
  });
  const actions = await LeaderStore.open({
    ...mirrorOf(database, options, 'actions', actionTables),
    ...held,
  }).catch(closing(control));
  const services = await startServices({
    ...given,
    registry,
    work: openDeclaredWork(stored, registry, config),
    journal: controlJournalOf(control),
    actionJournal: actionJournalOf(actions),
    isBackupRunning: () => false,
    config,
    log,
  }).catch(closing(control, actions));
  // What another node has declared, and builds on now, is known here then.
  const methods = new Map(
    [...methodsOf(services.controls)].map(([name, method]) => [
      name,
      async (...asked: Parameters<typeof method>) => {
        await stored.catchUp();
        return method(...asked);
      },
    ]),
  );
  const answerer = new RpcServer({ database, methods, log });
  const stop = async (): Promise<void> => {
    await services.stopWaiting();
    await answerer.close();
    await services.stop();
    await control.close();
  };
  return { services, answerer, stop };
}

function mirrorOf(
  database: Database,
  { folder, config }: OpenSharedOptions,
  store: string,
  tables: readonly string[],
) {
  return {
    store,
    tables,
    folder: join(folder, store),
    mapBytesMax: config.mapBytesMax,
    diskFreeBytesMin: config.diskFreeBytesMin,
    database,
  };
}

/** Of jobs that could not be begun, or their next begin would find its mirrors open. */
function closing(...opened: readonly LeaderStore[]): (error: unknown) => Promise<never> {
  return async (error) => {
    for (const tables of opened) await tables.close();
    throw error;
  };
}

/** The jobs may move between two requests: so each asks for them anew. */
function whereverTheyAre(find: () => RemoteServices): RemoteServices {
  const of = <N extends keyof RemoteServices>(name: N): RemoteServices[N] =>
    new Proxy({} as RemoteServices[N], {
      get(_, key) {
        const control = find()[name];
        const member: unknown = Reflect.get(control, key, control);
        return typeof member === 'function' ? member.bind(control) : member;
      },
    });
  return {
    actions: of('actions'),
    broadcasts: of('broadcasts'),
    consumers: of('consumers'),
    forwarders: of('forwarders'),
  };
}
