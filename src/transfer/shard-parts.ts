import { storedJumpsMs } from '../shard/clock.ts';
import type { Tables } from '../shard/tables.ts';
import { openTables } from '../shard/tables.ts';
import type { Environment } from '../store/environment.ts';
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
