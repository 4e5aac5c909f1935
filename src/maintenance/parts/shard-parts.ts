import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { storedJumpsMs } from '../../storage/lmdb/layout/shard-clock.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import { openTables } from '../../storage/lmdb/layout/tables.ts';
import { deviceParts, type IsPlaced } from './device-parts.ts';
import { endedParts } from './ended-parts.ts';
import { logParts } from './log-parts.ts';
import { mailParts } from './mail-parts.ts';
import { onceParts } from './once-parts.ts';
import type { Part, ShardSide } from './part.ts';

export function shardSideOf(environment: Environment): ShardSide<Tables> {
  const tables = openTables(environment);
  return { tables, jumpsMs: storedJumpsMs(tables.times) };
}

/** All that one shard holds, in the order in which it is copied. */
export function shardParts(side: ShardSide<Tables>, isPlaced: IsPlaced): Part[] {
  return [
    ...deviceParts(side.tables, isPlaced),
    ...mailParts(side),
    ...endedParts(side),
    ...onceParts(side.tables),
    ...logParts(side),
  ];
}
