import type { Environment } from '../store/environment.ts';
import { carryClock } from './clock.ts';
import { carryForgotten } from './idempotency.ts';

/** What a shard must know of time to take over devices of another. To do it again changes nothing. */
export function carryTimes(source: Environment, target: Environment): void {
  target.writeSync(() => {
    carryClock(source.table('times'), target.table('times'));
    carryForgotten(source.table('times'), target.table('times'));
  });
}
