import type { BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import type { ShardDedupe } from '../../../domain/mail/shard-mail.ts';
import type { Writer } from '../writes/writer.ts';

/** What a shard on PostgreSQL remembers of senders. */
export class PostgresDedupe implements ShardDedupe {
  readonly #writer: Writer;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  prune(before: Uint8Array | undefined): Promise<number> {
    return this.#writer.write('pruneDedupeKeys', before);
  }

  pruneBroadcasts(active: readonly BroadcastProgress[]): Promise<number> {
    return this.#writer.write('pruneBroadcasts', active);
  }
}
