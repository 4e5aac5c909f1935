import type { Log } from '../../core/telemetry/log.ts';
import type { Consumers } from '../records/consumers.ts';
import type { ForwarderConfig } from './config.ts';
import { LocalForwarderService } from './control.ts';
import { ForwarderDeadLetters } from './dead-letters.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { ByteBudget } from './delivery/byte-budget.ts';
import { Subscriptions } from './delivery/log-source.ts';
import { Forwarding } from './forwarding.ts';
import { type ForwarderJournal, forwarderKey } from './tables.ts';

export interface OpenForwardersOptions {
  journal: ForwarderJournal;
  forwarders: Forwarders;
  consumers: Consumers;
  shards: number;
  config: ForwarderConfig;
  log: Log;
}

/** Forwarders at work on the main thread. */
export interface RunningForwarders {
  control: LocalForwarderService;
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
    stop: () => forwarding.stop(),
  };
}
