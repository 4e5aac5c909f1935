import { type DeadLetterService, LocalDeadLetterService } from '../dead-letters/dead-letter-service.ts';
import type { ActionDeadLetter } from './action-work.ts';
import { Compiler } from './compiler/compiler.ts';
import { type ActionWorkOptions, forgetOthers, LocalActionWork } from './local-action-work.ts';
import { describeDeadLetter } from './outbox/dead-letters.ts';
import { ActionPool } from './pool/pool.ts';
import { Dispatcher } from './queue/dispatcher.ts';
import { ReadPace } from './runs/read-pace.ts';
import { actionKey } from './tables.ts';

export type ActionsOptions = Omit<ActionWorkOptions, 'pool' | 'compiler' | 'readPace' | 'dispatcher'>;

/** The action runtime, on the main thread. */
export interface RunningActions {
  work: LocalActionWork;
  deadLetters: DeadLetterService<ActionDeadLetter, number>;
  /**
   * Closes their journal too. Call it before closing the shards: what is in flight to them is abandoned and sent again
   * after the next start.
   */
  stop(): Promise<void>;
}

export async function startActions(base: ActionsOptions): Promise<RunningActions> {
  const { actions, journal } = base;
  await forgetOthers(journal, actions);
  const pool = new ActionPool(base);
  const compiler = new Compiler(base);
  const options = { ...base, pool, compiler, readPace: new ReadPace(base.config.settings) };
  const dispatcher = new Dispatcher(options);
  const work = new LocalActionWork({ ...options, dispatcher });
  await work.start();
  return {
    work,
    deadLetters: new LocalDeadLetterService({
      queue: dispatcher.deadLetters,
      ownerOf: (fleetId, name) => actionKey(actions.get(fleetId, name).id),
      describe: (_, number, letter) => describeDeadLetter(number, letter),
      replay: (fleetId, name, number) => dispatcher.replay(actions.get(fleetId, name), number),
    }),
    async stop() {
      await work.stop();
      await dispatcher.stop();
    },
  };
}
