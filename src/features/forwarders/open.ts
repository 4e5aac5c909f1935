import type { Log } from '../../core/telemetry/log.ts';
import type { Hold } from '../../domain/hold.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { type DeadLetterService, LocalDeadLetterService } from '../dead-letters/service.ts';
import type { Consumers } from '../records/consumers.ts';
import type { ForwarderConfig } from './config.ts';
import { LocalForwarderService } from './control.ts';
import { ForwarderDeadLetters, forwarderKey } from './dead-letters.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { ByteBudget } from './delivery/byte-budget.ts';
import { Subscriptions } from './delivery/log-source.ts';
import { Forwarding } from './forwarding.ts';
import type { ForwarderDeadLetter } from './service.ts';

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
  control: LocalForwarderService;
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
  const letters = new ForwarderDeadLetters(journal, input.config.forwardDeadLettersMax);
  const subscriptions = new Subscriptions(consumers);
  const budget = new ByteBudget(input.config.forwardBytesMax);
  const options = { ...input, letters, subscriptions, budget };
  const forwarding = new Forwarding(options);
  try {
    for (const id of await subscriptions.deleteOthers(forwarders.all()))
      await letters.forget(forwarderKey(id));
    for (const forwarder of forwarders.all()) await forwarding.restart(forwarder);
  } catch (error) {
    // Some are running already.
    await forwarding.stop();
    throw error;
  }
  return {
    control: new LocalForwarderService({ ...options, forwarders, forwarding }),
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
    stop: () => forwarding.stop(),
  };
}
