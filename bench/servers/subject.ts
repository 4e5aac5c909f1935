import type { TlsFiles } from '../../src/http/uws.ts';
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
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  /** Of the processes whose CPU time, with that of their children, is the server's. */
  processIds(): number[];
  /** Requests answered so far by status, where the server counts them. */
  answersByStatus?(): Promise<ReadonlyMap<number, number>>;
  /** Where it is of interest which threads the time is spent in. */
  threadTimes?(): ThreadTimes | undefined;
  /** Ends it and removes what it stored. */
  stop(): Promise<void>;
}

/** Something that can be measured. */
export interface Subject {
  /** As the report names it. */
  readonly name: string;
  /** What its answer to a datapoint promises. */
  readonly durability: string;
  /** Of a server that answers everything alike. */
  readonly constantStatus?: number;
  /** What is missing on this machine and how to get it; undefined when it can run. */
  missing(): string | undefined;
  start(options: StartOptions): Promise<RunningServer>;
}
