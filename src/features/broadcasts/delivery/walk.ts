import { yieldToEventLoop } from '../../../core/async.ts';
import type { Awaitable, Shard } from '../../../domain/shard.ts';

/** Devices in the order of their ids, over all shards: where one stands does not depend on how many there are. */
export interface DeviceWalk {
  /** The next ids, at most so many; none at the end. */
  next(limit: number): Promise<string[]>;
}

/** Ids read of one shard at once: a fraction of a millisecond of this thread. */
const pageSize = 256;

type ReadIds = (shard: Shard, after: string, limit: number) => Awaitable<string[]>;

interface Part {
  shard: Shard;
  ids: string[];
  at: number;
  /** The last one read. */
  after: string;
  isAtEnd: boolean;
}

/** Merges what shards have of a fleet, each in order already. */
export class ShardWalk implements DeviceWalk {
  readonly #read: ReadIds;
  readonly #parts: Part[];

  constructor(shards: readonly Shard[], read: ReadIds, after: string) {
    this.#read = read;
    this.#parts = shards.map((shard) => ({ shard, ids: [], at: 0, after, isAtEnd: false }));
  }

  async next(limit: number): Promise<string[]> {
    const found: string[] = [];
    while (found.length < limit) {
      for (const part of this.#parts) {
        if (part.at === part.ids.length && !part.isAtEnd) await this.#refill(part);
      }
      const first = lowest(this.#parts);
      const id = first?.ids[first.at];
      if (first === undefined || id === undefined) break;
      first.at += 1;
      found.push(id);
    }
    return found;
  }

  async #refill(part: Part): Promise<void> {
    part.ids = await this.#read(part.shard, part.after, pageSize);
    part.at = 0;
    part.after = part.ids.at(-1) ?? part.after;
    part.isAtEnd = part.ids.length < pageSize;
    // Devices are accepted, and operators answered, on this thread.
    await yieldToEventLoop();
  }
}

function lowest(parts: readonly Part[]): Part | undefined {
  let lowest: Part | undefined;
  let lowestId: string | undefined;
  for (const part of parts) {
    const id = part.ids[part.at];
    if (id === undefined || (lowestId !== undefined && id >= lowestId)) continue;
    lowest = part;
    lowestId = id;
  }
  return lowest;
}

/** A list, which is in order. */
export class ListWalk implements DeviceWalk {
  readonly #ids: readonly string[];
  #at: number;

  constructor(ids: readonly string[], after: string) {
    this.#ids = ids;
    const first = ids.findIndex((id) => id > after);
    this.#at = first < 0 ? ids.length : first;
  }

  async next(limit: number): Promise<string[]> {
    const found = this.#ids.slice(this.#at, this.#at + limit);
    this.#at += found.length;
    return found;
  }
}
