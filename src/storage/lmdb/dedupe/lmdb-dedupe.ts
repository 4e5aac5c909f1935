import type { MarkedBroadcast } from '../../../domain/mail/broadcast.ts';
import type { ShardDedupe } from '../../../domain/mail/shard-mail.ts';
import type { Environment } from '../environment/environment.ts';
import type { Tables } from '../layout/tables.ts';
import type { WriteQueue } from '../shard/write-queue.ts';
import { broadcastsIn } from './broadcast-marks.ts';
import { dedupeKeysBefore } from './dedupe-keys.ts';

/** A shard's memory of senders on LMDB: writes only if there is something to forget. */
export class LmdbDedupe implements ShardDedupe {
  readonly #environment: Environment;
  readonly #tables: Tables;
  readonly #queue: WriteQueue;

  constructor(environment: Environment, tables: Tables, queue: WriteQueue) {
    this.#environment = environment;
    this.#tables = tables;
    this.#queue = queue;
  }

  async prune(before: Uint8Array | undefined): Promise<number> {
    this.#environment.refresh();
    // A single step: before the next one, mail with an older dedupe key may have been sent.
    const old = this.#tables.sent.getKeys({ ...dedupeKeysBefore(before), limit: 1 });
    return isEmpty(old) ? 0 : this.#queue.write('pruneDedupeKeys', before);
  }

  broadcasts(after: Uint8Array | undefined, limit: number): MarkedBroadcast[] {
    this.#environment.refresh();
    return broadcastsIn(this.#tables.broadcast, after, limit);
  }

  forgetBroadcast(broadcast: Uint8Array): Promise<number> {
    return this.#queue.write('forgetBroadcast', broadcast);
  }
}

function isEmpty(keys: Iterable<unknown>): boolean {
  for (const _ of keys) return false;
  return true;
}
