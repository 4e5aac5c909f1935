import { createLog } from '../../../src/core/telemetry/log.ts';
import type { MailBytesMax } from '../../../src/domain/mail/mail-bytes.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import type { Config } from '../../../src/server/configuration/config.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { ShardOwner } from '../../../src/storage/lmdb/shard/owner.ts';
import { LmdbShards, openShardEnvironment } from '../../../src/threads/lmdb-shards.ts';
import { allocateCounters, counterCellOf, versionsOf } from '../../../src/threads/shared-counters.ts';
import { configWith } from '../server/config.ts';

/** Interval of sweeps, a tenth of a server's: tests wait for what is due. */
export const sweepMilliseconds = 100;

/** The one shard of a folder, with its owner on this thread. */
export interface OpenShard {
  shard: Shard;
  /** The same as a second front end has it. */
  elsewhere: Shard;
  environment: Environment;
  /** How many commits there were since it was opened. */
  commits(): number;
  /** Dead letters that went for newer ones since then. */
  droppedLetters(): number;
  close(): Promise<void>;
}

export function openShard(
  folder: string,
  changed: Partial<Config> & { sweepMilliseconds?: number; mailBytesMax?: MailBytesMax } = {},
  log = createLog('silent'),
): OpenShard {
  const config = {
    sweepMilliseconds: changed.sweepMilliseconds ?? sweepMilliseconds,
    ...configWith(changed),
    ...(changed.mailBytesMax && { mailBytesMax: changed.mailBytesMax }),
  };
  const counters = allocateCounters(1);
  const environment = openShardEnvironment(folder, 0, 1, config, counters);
  let droppedLetters = 0;
  const owner = new ShardOwner({
    environment,
    versions: versionsOf(counters, 0),
    depth: counterCellOf(counters.depths, 0),
    config,
    retention: {
      retention: () => ({
        ttlSeconds: config.settings.current.logRetentionSeconds,
        bytesMax: 0,
        fleets: new Map(),
      }),
      bytesElsewhere: () => new Map(),
    },
    metrics: {
      committed: () => {},
      failed: () => {},
      refused: () => {},
      recovered: () => {},
      lettersDropped: (count) => {
        droppedLetters += count;
      },
    },
    log,
    collect: () => {},
  });
  const [shard, elsewhere] = [0, 1].flatMap(
    () => new LmdbShards([environment], [owner], config, counters).all,
  );
  if (shard === undefined || elsewhere === undefined) throw new Error('one shard was opened, twice');
  return {
    shard,
    elsewhere,
    environment,
    commits: () => environment.commits,
    droppedLetters: () => droppedLetters,
    close: () => owner.close(),
  };
}
