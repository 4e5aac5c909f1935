import type { Move } from '../../storage/lmdb/environment/manifest.ts';

/** What one thread does of a move between two shard counts. */
export type MoveTask =
  /** Copies from that shard what the new layout has elsewhere. */
  | { type: 'copy'; shard: number }
  /** Copies the logs of the shards that the new layout does not have. One thread, for their order counts. */
  | { type: 'copyLogs' }
  /** Removes from that shard what the layout that is whole does not have there. */
  | { type: 'remove'; shard: number }
  /** Counts the devices of that shard, once it has all that are its own and no others. */
  | { type: 'count'; shard: number };

/** Given to the thread at its start. */
export interface MoveTaskStart {
  task: MoveTask;
  move: Move;
  /** The layout that is whole. */
  shards: number;
  /** Of the larger layout. */
  shardFolders: readonly string[];
  mapBytesMax: number;
  /** Records passed and devices moved by this task: the main thread reads along. */
  counts: Float64Array<SharedArrayBuffer>;
  /** Not 0 once the threads of the move should stop. */
  stop: Int32Array<SharedArrayBuffer>;
}
