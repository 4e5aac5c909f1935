import { availableParallelism } from 'node:os';
import type { Move } from '../../domain/placement.ts';
import { Environment } from '../../storage/lmdb/environment/environment.ts';
import { tableNames } from '../../storage/lmdb/layout/tables.ts';

/** Maximum threads at once, each of which reads one environment and writes to others. */
export const reshardThreadsMax = availableParallelism();
const spareReaders = 32;

/**
 * Opens a shard for resharding. A shard of the new layout only has no value before the switch, so its commits need not
 * wait for the disk. All others hold live data at any moment.
 */
export function openForReshard(path: string, shard: number, move: Move, mapBytesMax: number): Environment {
  return new Environment({
    path,
    tables: tableNames,
    mapBytesMax,
    readersMax: reshardThreadsMax + spareReaders,
    commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
    unsynced: shard >= move.from,
  });
}
