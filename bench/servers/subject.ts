import type { RecordableHistogram } from 'node:perf_hooks';
import type { TlsFiles } from '../../src/core/config/tls.ts';
import type { Mail } from './mail-queue.ts';
import type { ThreadTimes } from './thread-times.ts';

/** What a device shows with every request. */
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
  /** What to serve with, so that all subjects of a comparison use the same; each makes its own else. */
  tls?: TlsFiles;
}

/** A server that answers. */
export interface RunningServer extends AsyncDisposable {
  /** `https://127.0.0.1:PORT`; of the first node, where there are several. */
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  /** Of the processes whose CPU time, with that of their children, is the server's. */
  processIds(): number[];
  /** Of these, those of its database, where that is a server of its own. */
  databaseProcessIds?(): number[];
  /** Where there are several that share the load. */
  readonly nodes?: readonly RunningServer[];
  /** Requests answered so far by status, where the server counts them. */
  answersByStatus?(): Promise<ReadonlyMap<number, number>>;
  /** Where it is of interest which threads the time is spent in. */
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
  /** As the report names it. */
  readonly name: string;
  /** What its answer to a datapoint promises. */
  readonly durability: string;
  /** Of a server that answers everything alike. */
  readonly constantStatus?: number;
  /** What is missing on this machine and how to get it; undefined when it can run. */
  missing(): string | undefined;
  start(options: StartOptions): Promise<S>;
}
