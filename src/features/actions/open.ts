import { type DeadLetterService, LocalDeadLetterService } from '../dead-letters/service.ts';
import { type ActionServiceOptions, LocalActionService } from './control.ts';
import { describeDeadLetter } from './outbox/dead-letters.ts';
import { ActionPool } from './pool/pool.ts';
import { TypeChecker } from './pool/type-checker.ts';
import { Dispatcher } from './queue/dispatcher.ts';
import type { ActionDeadLetter } from './service.ts';
import { actionKey } from './tables.ts';

export type ActionsOptions = Omit<ActionServiceOptions, 'pool' | 'types' | 'dispatcher'>;

/** The action runtime, on the main thread. */
export interface RunningActions {
  control: LocalActionService;
  deadLetters: DeadLetterService<ActionDeadLetter, number>;
  /**
   * Closes their journal too. Call it before closing the shards: what is in flight to them is abandoned and sent again
   * after the next start.
   */
  stop(): Promise<void>;
}

export function startActions(base: ActionsOptions): RunningActions {
  const pool = new ActionPool(base);
  const types = new TypeChecker();
  const options = { ...base, pool, types };
  const dispatcher = new Dispatcher(options);
  const { actions } = base;
  return {
    control: new LocalActionService({ ...options, dispatcher }),
    deadLetters: new LocalDeadLetterService({
      queue: dispatcher.deadLetters,
      ownerOf: (fleetId, name) => actionKey(actions.get(fleetId, name).id),
      describe: (_, number, letter) => describeDeadLetter(number, letter),
      replay: (fleetId, name, number) => dispatcher.replay(actions.get(fleetId, name), number),
    }),
    stop: () => dispatcher.stop(),
  };
}
