import type { Environment } from '../environment/environment.ts';
import { carryForgotten } from '../environment/idempotency-keys.ts';
import { carryClock } from '../layout/shard-clock.ts';

/** What a shard must know of time to take over devices of another. To do it again changes nothing. */
export function carryTimes(source: Environment, target: Environment): void {
  target.writeSync(() => {
    carryClock(source.table('times'), target.table('times'));
    carryForgotten(source.table('times'), target.table('times'));
  });
}
