import { Batcher, type BatcherOptions } from '../../../core/async.ts';
import { unavailable } from '../../../core/errors.ts';

/** Maximum keys per statement: more save nothing. */
const batchMax = 1_000;
/** Maximum keys waiting: further ones are refused at once. */
const waitingMax = 10_000;

/**
 * Batches queries into one statement for all requests of a turn of the event loop, and for those that come while it is
 * in flight: a statement costs tens of microseconds, whatever it reads.
 */
export class QueryBatcher<K, V> extends Batcher<K, V> {
  /**
   * `ask` returns a value per key, in order. Keys that have waited for longer than `waitMilliseconds` are refused as
   * unavailable: the database is stuck, or far too slow.
   */
  constructor(
    ask: (keys: readonly K[]) => Promise<readonly V[]>,
    underWayMax: number,
    waitMilliseconds: number,
    bytes?: BatcherOptions<K, V>['bytes'],
  ) {
    super({
      run: ask,
      begin: setImmediate,
      underWayMax,
      itemsMax: batchMax,
      bytes,
      waiting: { itemsMax: waitingMax, msMax: waitMilliseconds, refusal },
    });
  }
}

function refusal(reason: 'full' | 'late'): Error {
  return unavailable(
    reason === 'full'
      ? 'Too many queries wait for the database. Retry later.'
      : 'The database is too slow. Retry later.',
  );
}
