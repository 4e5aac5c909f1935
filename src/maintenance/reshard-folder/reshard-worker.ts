import { workerData } from 'node:worker_threads';
import { shardOf } from '../../domain/placement.ts';
import { countDevices } from '../../storage/lmdb/devices/device-index.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import { countMails } from '../../storage/lmdb/mail/mail-bytes.ts';
import { copyDevices, removeDevices, type Step } from '../../storage/lmdb/reshard/move-devices.ts';
import { copyTimes, cutLog, moveLog } from '../../storage/lmdb/reshard/move-log.ts';
import { openForReshard } from './reshard-environment.ts';
import type { ReshardTask, ReshardTaskStart } from './reshard-threads.ts';

/** One thread of resharding: runs one task, step by step, and exits. */
const { task, move, shards, shardFolders, mapBytesMax, counts, stop } = workerData as ReshardTaskStart;
const opened = new Map<number, Environment>();

function environmentOf(shard: number): Environment {
  const known = opened.get(shard);
  if (known !== undefined) return known;
  const environment = openForReshard(shardFolders[shard] ?? '', shard, move, mapBytesMax);
  opened.set(shard, environment);
  return environment;
}

function* steps(task: ReshardTask): Generator<Step> {
  switch (task.type) {
    case 'copy':
      for (let target = 0; target < move.to; target += 1) {
        if (target !== task.shard) copyTimes(environmentOf(task.shard), environmentOf(target));
      }
      yield* copyDevices(environmentOf(task.shard), (device) => {
        const target = shardOf(device, move.to);
        return target === task.shard ? undefined : environmentOf(target);
      });
      break;
    case 'copyLogs':
      // In this order: a lower shard has the older records of a device.
      for (let shard = move.to; shard < move.from; shard += 1) {
        yield* moveLog(environmentOf(shard), (device) => environmentOf(shardOf(device, move.to)));
      }
      break;
    case 'count':
      countDevices(environmentOf(task.shard));
      countMails(environmentOf(task.shard));
      break;
    case 'remove': {
      const end = move.logEnds[task.shard];
      if (shards === move.from && end !== undefined) cutLog(environmentOf(task.shard), end);
      yield* removeDevices(environmentOf(task.shard), (device) => shardOf(device, shards) !== task.shard);
    }
  }
}

for (const { passed, devices } of steps(task)) {
  counts[0] = (counts[0] ?? 0) + passed;
  counts[1] = (counts[1] ?? 0) + devices;
  if (Atomics.load(stop, 0) !== 0) break;
}
for (const environment of opened.values()) await environment.close();
