import { ActionPool } from '../actions/pool.ts';
import { Control, type ControlOptions } from '../dispatch/control.ts';
import { Dispatcher } from '../dispatch/dispatcher.ts';
import { openJournal } from './environments.ts';

export interface ActionsOptions extends Omit<ControlOptions, 'journal' | 'pool' | 'dispatcher'> {
  /** Of their environment. */
  path: string;
}

/** What runs actions, on the main thread. */
export interface RunningActions {
  control: Control;
  /** Before the shards: what is on its way to them is given up and goes again after the next start. */
  stop(): Promise<void>;
}

export function startActions({ path, ...given }: ActionsOptions): RunningActions {
  const pool = new ActionPool({ threads: given.config.actionThreads });
  const options = { ...given, pool, journal: openJournal(path, given.config) };
  const dispatcher = new Dispatcher(options);
  return { control: new Control({ ...options, dispatcher }), stop: () => dispatcher.stop() };
}
