import { Batcher, type BatcherOptions } from '../../../core/async.ts';
import { unavailable } from '../../../core/errors.ts';

/** Of one statement: more of them save no more. */
const gatheredMax = 1_000;
/** What waits to be asked: more are refused at once. */
const waitingMax = 10_000;

/**
 * One statement for what all requests of one turn of the event loop ask, and for what comes while it is under way:
 * a statement costs tens of microseconds whatever it asks for.
 */
export class QueryBatcher<K, V> extends Batcher<K, V> {
  /**
   * `ask` answers a value for each key, in their order. What has waited for longer than `waitMilliseconds` is refused,
   * as unavailable: the database is stuck, or far too slow.
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
      itemsMax: gatheredMax,
      bytes,
      waiting: { itemsMax: waitingMax, msMax: waitMilliseconds, refusal },
    });
  }
}

function refusal(reason: 'full' | 'late'): Error {
  return unavailable(reason === 'full' ? 'Too many wait for the database.' : 'The database is too slow.');
}
