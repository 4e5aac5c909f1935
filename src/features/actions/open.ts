import { type ActionServiceOptions, LocalActionService } from './control.ts';
import { ActionPool } from './pool/pool.ts';
import { Dispatcher } from './queue/dispatcher.ts';

export type ActionsOptions = Omit<ActionServiceOptions, 'pool' | 'dispatcher'>;

/** What runs actions, on the main thread. */
export interface RunningActions {
  control: LocalActionService;
  /** With their journal, before the shards: what is on its way to them is given up and goes again after the next start. */
  stop(): Promise<void>;
}

export function startActions(given: ActionsOptions): RunningActions {
  const pool = new ActionPool(given);
  const options = { ...given, pool };
  const dispatcher = new Dispatcher(options);
  return { control: new LocalActionService({ ...options, dispatcher }), stop: () => dispatcher.stop() };
}
