import type { MessagePort } from 'node:worker_threads';
import type { TlsFiles } from '../../core/config/tls.ts';
import type { ErrorCode, ErrorOptions } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { ClaimRequest } from '../../declarations/claim-token.ts';
import type { DisabledSchema, FleetSnapshot, FleetUpdate } from '../../declarations/fleet.ts';
import type { LockoutMemory } from '../../device-api/auth/lockouts.ts';
import type { RateMemory } from '../../device-api/limits/request-rates.ts';
import type { AppDescriptor } from '../../device-api/uws/uws.ts';
import type { Presence } from '../../domain/devices/device-query.ts';
import type { Announcement } from '../../domain/mail/mail.ts';
import type { Write, WriteAnswer } from '../../storage/lmdb/shard/write.ts';
import type { ThreadConfig, ThreadSettings } from '../config.ts';
import type { WriteRelayMemory } from './ring.ts';

/** Messages between threads. A call is answered; a notice is not. */
export type Call =
  | { type: 'write'; write: Write }
  | { type: 'subscribe'; stream: number; device: DeviceKey; waits: boolean }
  /** Asks which devices of the shard have open event streams: a method of `Presence` and its parameters. */
  | { type: 'presence'; method: keyof Presence; params: unknown[] }
  | { type: 'updateFleet'; update: FleetUpdate }
  | { type: 'configure'; values: Partial<ThreadSettings> }
  /** Sent to the main thread; the answer is the device. */
  | { type: 'claim'; claim: ClaimRequest }
  /** Sent to the acceptor: the answer is the port, or undefined when it cannot be had. */
  | { type: 'listen'; host: string; port: number }
  | { type: 'stopListening' }
  /** Tells the acceptor whom new connections go to. */
  | { type: 'deal'; descriptor: AppDescriptor }
  | { type: 'stopDealing'; descriptor: AppDescriptor }
  | { type: 'watchThreads' }
  /** The answer is the descriptor to deal new connections to from now on. */
  | { type: 'renewCertificate'; tls: TlsFiles }
  | { type: 'takeSpans' }
  /** The answer is the top devices of this worker, of one fleet or of all. */
  | { type: 'talkers'; limit: number; fleetId: string | undefined }
  /** The answer is the requests of each fleet since the last call. */
  | { type: 'takePulses' }
  /** The answer is what this worker has refused to the device, and accepted since. */
  | { type: 'refusals'; device: DeviceKey }
  /** The answer is what this worker has refused to the devices of a fleet since then, and accepted since. */
  | { type: 'refusalsOfFleet'; fleetId: string; sinceMs: number }
  /** Finish requests in flight and close every connection. */
  | { type: 'drain' }
  /** Flush writes to disk and end. */
  | { type: 'close' };

export type Notice =
  /** Poll your rings: your sleep flag says that you do not by yourself. */
  | { type: 'wake' }
  /** Answer to a write that came by ring, if it has no frame or the ring is full. */
  | { type: 'answered'; call: number; answer: WriteAnswer }
  | { type: 'refused'; call: number; code: ErrorCode; options: ErrorOptions }
  /** Addresses at their connection limit. */
  | { type: 'fullAddresses'; addresses: readonly string[] }
  /** Tells the main thread that no body may be validated against the schema any more. */
  | { type: 'schemaDisabled'; schema: DisabledSchema }
  | { type: 'unsubscribe'; stream: number }
  | { type: 'announce'; stream: number; announcement: Announcement }
  | { type: 'recheckStream'; stream: number }
  | { type: 'endStream'; stream: number };

/** Memory shared by all threads: one cell per shard, or one block. */
export interface SharedCounters {
  /** Commits, to tell a reader that its snapshot is stale. */
  commits: SharedArrayBuffer;
  /** Writes in flight, so that their sum can be bounded. */
  depths: SharedArrayBuffer;
  /** Payload bytes of those writes. */
  depthBytes: SharedArrayBuffer;
  /** Versions of devices, to tell a front end whether its cached device is current. */
  versions: readonly SharedArrayBuffer[];
  writeRelay: WriteRelayMemory;
  heartbeats: SharedArrayBuffer;
  connections: SharedArrayBuffer;
  lockouts: LockoutMemory;
  rates: RateMemory;
  /** `DeviceMarks` of devices that were refused something, and of those that are watched. */
  refused: SharedArrayBuffer;
  watched: SharedArrayBuffer;
}

export interface WorkerStart {
  index: number;
  /** Worker threads in all. */
  workers: number;
  config: ThreadConfig;
  /** LMDB: one per worker. */
  shardFolders: readonly string[];
  /** Size limit of their logs together where `logBytesMax` is 0; 0 for no limit. */
  logBytesByDisk: number;
  tls: TlsFiles;
  fleets: readonly FleetSnapshot[];
  counters: SharedCounters;
  /** Memory of a `Hold`. */
  hold: SharedArrayBuffer;
  metrics: SharedArrayBuffer;
  /** Ports to the main thread and to every other worker; none under the worker's own index. */
  mainPort: MessagePort;
  peerPorts: readonly (MessagePort | undefined)[];
}

export interface AcceptorStart {
  settings: ThreadConfig['settings'];
  tls: TlsFiles;
  /** Worker threads in all. */
  workers: number;
  counters: SharedCounters;
  mainPort: MessagePort;
}

/** A worker's only message to its parent: it can be dealt connections. */
export interface WorkerReady {
  descriptor: AppDescriptor;
}
