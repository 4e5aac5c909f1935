import type { TlsFiles } from '../../src/http/uws.ts';
import type { ServerProcess } from './server-process.ts';
import type { Credentials, RunningServer } from './subject.ts';
import { removeFolder } from './temporary-folder.ts';

/** A server other than Fleetpost: some processes, that of the front last, and a folder that goes with them. */
export class Peer implements RunningServer {
  readonly url: string;
  readonly certFile: string;
  readonly devices: readonly Credentials[];
  readonly #processes: readonly ServerProcess[];
  readonly #folder: string;

  constructor(
    port: number,
    { certFile }: TlsFiles,
    devices: readonly Credentials[],
    processes: readonly ServerProcess[],
    folder: string,
  ) {
    this.url = `https://127.0.0.1:${port}`;
    this.certFile = certFile;
    this.devices = devices;
    this.#processes = processes;
    this.#folder = folder;
  }

  processIds(): number[] {
    return this.#processes.map(({ pid }) => pid);
  }

  async stop(): Promise<void> {
    for (const process of this.#processes.toReversed()) await process.stop();
    removeFolder(this.#folder);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
