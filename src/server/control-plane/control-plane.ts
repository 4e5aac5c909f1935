import type { Fleets } from '../../declarations/fleet.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import type { LogReader } from '../../features/records/log-reader.ts';
import type { MainShards } from '../../threads/shards.ts';
import type { Declarations } from './declarations.ts';
import type { RemoteServices } from './remote-services.ts';

/** What the work that goes on by itself is about. */
export interface LeaderWorkOptions {
  fleets: Fleets;
  shards: MainShards;
  reader: LogReader;
}

/** The work that goes on by itself, here or on another node. */
export interface LeaderWork {
  /** What the admin API asks of it. */
  controls: RemoteServices;
  /** Before the admin server ends: requests that wait for records are answered. */
  stopWaiting(): Promise<void>;
  /** Before the shards. */
  stop(): Promise<void>;
}

/** What a server keeps besides its shards: in its data folder, or in a database together with other nodes. */
export interface ControlPlane extends Declarations {
  audit: AuditLog;
  /** Once the shards are there. Of what is kept in a folder: @throws what a part of it cannot start for. */
  startWork(options: LeaderWorkOptions): Promise<LeaderWork>;
}
