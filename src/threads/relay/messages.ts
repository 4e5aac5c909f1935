import type { MessagePort } from 'node:worker_threads';
import type { ErrorCode, ErrorOptions } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { ClaimRequest } from '../../declarations/claim-token.ts';
import type { DisabledSchema, FleetSnapshot } from '../../declarations/fleet.ts';
import type { LockoutMemory } from '../../device-api/auth/lockouts.ts';
import type { RateMemory } from '../../device-api/limits/request-rates.ts';
import type { AppDescriptor, TlsFiles } from '../../device-api/uws/uws.ts';
import type { Presence } from '../../domain/devices/device-query.ts';
import type { Announcement } from '../../domain/mail/mail.ts';
import type { Write, WriteAnswer } from '../../storage/lmdb/shard/write.ts';
import type { ThreadConfig } from '../config.ts';
import type { WriteRelayMemory } from './ring.ts';

/** Everything that crosses threads, by name. A call is answered; a notice is not. */
export type Call =
  | { type: 'write'; write: Write }
  | { type: 'subscribe'; stream: number; device: DeviceKey }
  /** Which devices of the shard have open event streams: a method of `Presence` and what it is given. */
  | { type: 'presence'; method: keyof Presence; given: unknown[] }
  | { type: 'putFleet'; snapshot: FleetSnapshot }
  /** Values of the configuration that can change at run time. */
  | { type: 'configure'; values: Partial<ThreadConfig> }
  /** To the main thread, answered with the device. */
  | { type: 'claim'; claim: ClaimRequest }
  /** Answered with the descriptor to deal new connections to from now on. */
  | { type: 'renewCertificate'; tls: TlsFiles }
  | { type: 'takeSpans' }
  /** Answered with the devices that ask this worker most. */
  | { type: 'talkers'; limit: number }
  /** Finish what is in flight and close every connection. */
  | { type: 'drain' }
  /** Put what was written on disk and end. */
  | { type: 'close' };

export type Notice =
  /** Look at your rings: you said that you would not by yourself. */
  | { type: 'wake' }
  /** To a write that came by ring, what does not fit there. */
  | { type: 'answered'; call: number; answer: WriteAnswer }
  | { type: 'refused'; call: number; code: ErrorCode; options: ErrorOptions }
  /** Addresses that have all the connections they may have. */
  | { type: 'fullAddresses'; addresses: readonly string[] }
  /** To the main thread: no body may be held against it any more. */
  | { type: 'schemaDisabled'; schema: DisabledSchema }
  | { type: 'unsubscribe'; stream: number }
  | { type: 'announce'; stream: number; announcement: Announcement }
  | { type: 'recheckStream'; stream: number }
  | { type: 'endStream'; stream: number };

/** Shared by all threads, one cell a shard, or one block. */
export interface SharedCounters {
  /** Commits, so that a reader knows when its snapshot is old. */
  commits: SharedArrayBuffer;
  /** Writes under way, so that their sum can be bounded. */
  depths: SharedArrayBuffer;
  /** Payload bytes of those writes. */
  depthBytes: SharedArrayBuffer;
  /** Versions of devices, so that a front end knows whether what it knows of one still holds. */
  versions: readonly SharedArrayBuffer[];
  crossing: WriteRelayMemory;
  /** Signs of life of all threads. */
  beats: SharedArrayBuffer;
  connections: SharedArrayBuffer;
  lockouts: LockoutMemory;
  rates: RateMemory;
}

export interface WorkerStart {
  index: number;
  /** Worker threads in all. */
  workers: number;
  config: ThreadConfig;
  /** Of LMDB: as many as workers. */
  shardFolders: readonly string[];
  /** What their log may take on disk together where `logBytesMax` is 0; 0 for no limit. */
  logBytesByDisk: number;
  tls: TlsFiles;
  fleets: readonly FleetSnapshot[];
  counters: SharedCounters;
  metrics: SharedArrayBuffer;
  /** To the main thread, and to every other worker; none under the worker's own index. */
  mainPort: MessagePort;
  peerPorts: readonly (MessagePort | undefined)[];
}

/** A worker's one message to its parent: it can be dealt connections. */
export interface WorkerReady {
  descriptor: AppDescriptor;
}
