import { queueFull } from '../../../core/errors.ts';
import type { ShardStreams } from '../../../domain/shard-streams.ts';
import type { Completion } from '../../../domain/write.ts';
import type { StorageConfig } from '../../config.ts';
import type { Write, WriteAnswer, Writes, WriteType } from './write.ts';

/** Writes to the shard's owner and the streams it keeps: directly on its own thread, by message from any other. */
export interface ShardWriter extends ShardStreams {
  /** Takes callbacks, since each request has one promise, made where the request is. */
  write(write: Write, completion: Completion<WriteAnswer>): void;
}

/** Writes under way to one shard, which all threads count together. */
export interface QueueDepth {
  writes: Int32Array<SharedArrayBuffer>;
  /** Payload bytes of those writes. */
  bytes: Int32Array<SharedArrayBuffer>;
}

/** One thread's way to the owner of a shard, bounded by what all threads have under way to it. */
export class WriteQueue {
  readonly #owner: ShardWriter;
  readonly #depth: QueueDepth;
  readonly #settings: StorageConfig['settings'];

  constructor(owner: ShardWriter, depth: QueueDepth, settings: StorageConfig['settings']) {
    this.#owner = owner;
    this.#depth = depth;
    this.#settings = settings;
  }

  accepts(): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#settings.current;
    return (
      Atomics.load(this.#depth.writes, 0) < shardQueueMax &&
      Atomics.load(this.#depth.bytes, 0) < shardQueueBytesMax
    );
  }

  /**
   * Settles when the write is durable. Counts the write; the owner uncounts it, a batch at a time, without another
   * promise. `bytes` is the size of its payload. @throws ApiError unavailable
   */
  write<T extends WriteType>(type: T, params: Writes[T]['params'], bytes = 0): Promise<Writes[T]['answer']> {
    // A front end has one write of notes under way at a time, and they must not be lost to overload.
    if (type !== 'noteActivity' && !this.accepts()) return Promise.reject(queueFull());
    const { writes, bytes: depthBytes } = this.#depth;
    Atomics.add(writes, 0, 1);
    Atomics.add(depthBytes, 0, bytes);
    return new Promise((resolve, reject) => {
      this.#owner.write({ type, params } as Write, {
        resolve: (answer) => {
          Atomics.sub(depthBytes, 0, bytes);
          (resolve as (answer: WriteAnswer) => void)(answer);
        },
        reject: (error) => {
          Atomics.sub(depthBytes, 0, bytes);
          reject(error);
        },
      });
    });
  }
}
