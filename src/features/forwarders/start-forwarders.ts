import type { Log } from '../../core/telemetry/log.ts';
import type { Hold } from '../../domain/hold.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import type { Consumers } from '../consumers/consumers.ts';
import { type DeadLetterService, LocalDeadLetterService } from '../dead-letters/dead-letter-service.ts';
import type { ForwarderConfig } from './config.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { ByteBudget } from './delivery/byte-budget.ts';
import { Subscriptions } from './delivery/log-source.ts';
import { ForwarderDeadLetters, forwarderKey } from './forwarder-dead-letters.ts';
import type { ForwarderDeadLetter } from './forwarder-work.ts';
import { Forwarding } from './forwarding.ts';
import { LocalForwarderWork } from './local-forwarder-work.ts';

export interface OpenForwardersOptions {
  journal: Journal;
  forwarders: Forwarders;
  consumers: Consumers;
  shards: number;
  hold: Hold;
  config: ForwarderConfig;
  log: Log;
}

/** Forwarders at work on the main thread. */
export interface RunningForwarders {
  work: LocalForwarderWork;
  deadLetters: DeadLetterService<ForwarderDeadLetter, Buffer>;
  /** Abandons attempts under way, which are repeated after the next start. Call it before the consumers stop. */
  stop(): Promise<void>;
}

export async function startForwarders({
  journal,
  forwarders,
  consumers,
  ...input
}: OpenForwardersOptions): Promise<RunningForwarders> {
  const { forwardDeadLettersMax, forwardDeadLetterBytesMax } = input.config;
  const letters = new ForwarderDeadLetters(journal, {
    letters: forwardDeadLettersMax,
    bytes: forwardDeadLetterBytesMax,
  });
  const subscriptions = new Subscriptions(consumers);
  const budget = new ByteBudget(input.config.forwardBytesMax);
  const options = { ...input, forwarders, letters, subscriptions, budget };
  const forwarding = new Forwarding(options);
  const work = new LocalForwarderWork({ ...options, forwarding });
  await work.start();
  return {
    work,
    deadLetters: new LocalDeadLetterService({
      queue: letters,
      ownerOf: (fleetId, name) => forwarderKey(forwarders.get(fleetId, name).id),
      describe: (forwarder, id, letter) => ({ ...letter, isReplayed: letters.isReplayed(forwarder, id) }),
      replay: async (fleetId, name, id) => {
        const forwarder = forwarders.get(fleetId, name);
        const replayed = await letters.replay(forwarderKey(forwarder.id), id);
        forwarding.wakeReplays(forwarder);
        return replayed;
      },
    }),
    stop: () => work.stop(),
  };
}
