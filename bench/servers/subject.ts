import type { RecordableHistogram } from 'node:perf_hooks';
import type { TlsFiles } from '../../src/core/config/tls.ts';
import type { Mail } from './mail-queue.ts';
import type { ThreadTimes } from './thread-times.ts';

/** Credentials that a device shows with every request. */
export interface Credentials {
  fleetId: string;
  deviceId: string;
  secret: string;
}

export interface StartOptions {
  /** Worker threads of Fleetpost, worker processes of the others. */
  shards: number;
  /** How many devices it knows when it is ready. */
  devices: number;
  /** Certificate and key to serve with, so that all subjects of a comparison use the same; each makes its own else. */
  tls?: TlsFiles;
}

/** A server that answers. */
export interface RunningServer extends AsyncDisposable {
  /** `https://127.0.0.1:PORT`; of the first node, where there are several. */
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  /** Processes whose CPU time, with that of their children, is the server's. */
  processIds(): number[];
  /** Those of these processes that are its database's, where that is a server of its own. */
  databaseProcessIds?(): number[];
  /** All nodes, if several share the load. */
  readonly nodes?: readonly RunningServer[];
  /** Requests answered so far by status, where the server counts them. */
  answersByStatus?(): Promise<ReadonlyMap<number, number>>;
  /** CPU time by thread, if it is of interest which threads the time is spent in. */
  threadTimes?(): ThreadTimes | undefined;
  /** Ends it and removes what it stored. */
  stop(): Promise<void>;
}

/** A server whose devices have mailboxes that can be filled. */
export interface MailServer extends RunningServer {
  /** Settles once all are on disk, with their ids; `latency` takes the nanoseconds of each request. */
  enqueue(mails: readonly Mail[], latency?: RecordableHistogram): Promise<string[]>;
}

/** Something that can be measured. */
export interface Subject<S extends RunningServer = RunningServer> {
  /** Its name in the report. */
  readonly name: string;
  /** Durability that its answer to a datapoint promises. */
  readonly durability: string;
  /** Status of a server that answers everything alike. */
  readonly constantStatus?: number;
  /** Names what is missing on this machine and how to get it; undefined when it can run. */
  missing(): string | undefined;
  start(options: StartOptions): Promise<S>;
}
