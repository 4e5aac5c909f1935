import { rmSync } from 'node:fs';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { type OpenShard, openShard } from '../../harness/storage/shard.ts';
import type { Engine, EngineOptions, OpenEngine } from './engine.ts';

class OpenLmdb implements OpenEngine {
  readonly #folder = temporaryFolder();
  #options: EngineOptions;
  #opened: OpenShard;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#opened = openShard(this.#folder, options);
  }

  get shard() {
    return this.#opened.shard;
  }

  get elsewhere() {
    return this.#opened.elsewhere;
  }

  async reopen(changed: EngineOptions = {}): Promise<void> {
    await this.close();
    this.#options = { ...this.#options, ...changed };
    this.#opened = openShard(this.#folder, this.#options);
  }

  close(): Promise<void> {
    return this.#opened.close();
  }

  async remove(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** LMDB, with the owner of its one shard on the thread of the test. */
export const lmdbEngine: Engine = {
  name: 'LMDB',
  open: async (options = {}) => new OpenLmdb(options),
};
