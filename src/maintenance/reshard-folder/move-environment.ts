import { availableParallelism } from 'node:os';
import { Environment } from '../../storage/lmdb/environment/environment.ts';
import type { Move } from '../../storage/lmdb/environment/manifest.ts';
import { tableNames } from '../../storage/lmdb/layout/tables.ts';

/** Threads of a move that run at once, each of which reads one environment and writes to others. */
export const moveThreadsMax = availableParallelism();
const spareReaders = 32;

/**
 * A shard as the threads of a move open it. A shard that only the new layout has counts for nothing before
 * the switch, so its commits need not wait for the disk. All others are somebody's data at any moment.
 */
export function openForMove(path: string, shard: number, move: Move, mapBytesMax: number): Environment {
  return new Environment({
    path,
    tables: tableNames,
    mapBytesMax,
    readersMax: moveThreadsMax + spareReaders,
    commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
    unsynced: shard >= move.from,
  });
}
