import type { LogRetention } from '../../../src/domain/log-retention.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { storeTrimState } from '../../../src/storage/lmdb/log/log-trim-state.ts';
import { LogTrimmer } from '../../../src/storage/lmdb/log/log-trimmer.ts';

export interface TrimNow {
  retention: Partial<LogRetention>;
  nowMs?: number;
  elsewhere?: ReadonlyMap<string, number>;
}

/** One pass over the log of a shard that nobody owns. Answers how many bytes its largest step wrote. */
export async function trimLog(environment: Environment, trim: TrimNow): Promise<number> {
  const log = environment.table('log');
  const times = environment.table('times');
  let bytesMax = 0;
  const trimmer = new LogTrimmer({
    log,
    times,
    source: {
      retention: () => ({ ttlSeconds: 1, bytesMax: 0, fleets: new Map(), ...trim.retention }),
      bytesElsewhere: () => trim.elsewhere ?? new Map(),
    },
    lifeMs: () => trim.nowMs ?? Date.now(),
    logBytes: () => environment.sizeOf('log').bytes,
    onExcess: () => {},
  });
  for (const { changes, state } of trimmer.steps()) {
    await environment.write(() => {
      for (const { key, value } of changes) {
        if (value === undefined) log.removeSync(key);
        else log.putSync(key, value);
      }
      if (state !== undefined) storeTrimState(times, state);
    });
    environment.refresh();
    const bytes = changes.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
    bytesMax = Math.max(bytesMax, bytes);
  }
  return bytesMax;
}
