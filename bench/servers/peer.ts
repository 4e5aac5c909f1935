import type { TlsFiles } from '../../src/core/config/tls.ts';
import type { Credentials, RunningServer } from './subject.ts';
import { removeFolder } from './temporary-folder.ts';

/** A process of a peer; disposing ends it. */
type PeerProcess = AsyncDisposable & { readonly pid: number };

export interface PeerOptions {
  port: number;
  tls: TlsFiles;
  devices: readonly Credentials[];
  /** That of the front last. */
  processes: readonly PeerProcess[];
  /** One of the processes, where it has a database. */
  database?: PeerProcess;
  /** It goes with them. */
  folder: string;
}

/** A server other than Fleetpost: some processes and a folder. */
export class Peer implements RunningServer {
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  readonly #processes: readonly PeerProcess[];
  readonly #database: PeerProcess | undefined;
  readonly #folder: string;

  constructor({ port, tls, devices, processes, database, folder }: PeerOptions) {
    this.url = `https://127.0.0.1:${port}`;
    this.certFile = tls.certFile;
    this.devices = devices;
    this.#processes = processes;
    this.#database = database;
    this.#folder = folder;
  }

  processIds(): number[] {
    return this.#processes.map(({ pid }) => pid);
  }

  databaseProcessIds(): number[] {
    return this.#database ? [this.#database.pid] : [];
  }

  async stop(): Promise<void> {
    for (const process of this.#processes.toReversed()) await process[Symbol.asyncDispose]();
    removeFolder(this.#folder);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
