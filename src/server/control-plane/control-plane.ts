import type { Fleets } from '../../declarations/fleet.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import type { LogFollower } from '../../features/records/log-follower.ts';
import type { MainShards } from '../../threads/main-shards.ts';
import type { Declarations } from './declarations.ts';
import type { RemoteServices } from './remote-services.ts';

export interface LeaderWorkOptions {
  fleets: Fleets;
  shards: MainShards;
  follower: LogFollower;
}

/** The leader's background work, on this or another node. */
export interface LeaderWork {
  /** Its interface for the admin API. */
  services: RemoteServices;
  /** Answers requests that wait for records; called before the admin server stops. */
  stopWaiting(): Promise<void>;
  /** Called before the shards stop. */
  stop(): Promise<void>;
}

/** The state of a server besides its shards: in its data folder, or in a database shared with other nodes. */
export interface ControlPlane extends Declarations {
  audit: AuditLog;
  /** Versions of the program on all nodes; its own without the database. */
  programVersions(): Promise<readonly string[]>;
  /** Called once the shards have started. In a data folder: @throws the error of a part that cannot start. */
  startWork(options: LeaderWorkOptions): Promise<LeaderWork>;
}
