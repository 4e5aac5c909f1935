import { type ActionServiceOptions, LocalActionService } from './control.ts';
import { ActionPool } from './pool/pool.ts';
import { Dispatcher } from './queue/dispatcher.ts';

export type ActionsOptions = Omit<ActionServiceOptions, 'pool' | 'dispatcher'>;

/** The action runtime, on the main thread. */
export interface RunningActions {
  control: LocalActionService;
  /**
   * Closes their journal too. Call it before closing the shards: what is in flight to them is abandoned and sent again
   * after the next start.
   */
  stop(): Promise<void>;
}

export function startActions(base: ActionsOptions): RunningActions {
  const pool = new ActionPool(base);
  const options = { ...base, pool };
  const dispatcher = new Dispatcher(options);
  return { control: new LocalActionService({ ...options, dispatcher }), stop: () => dispatcher.stop() };
}
