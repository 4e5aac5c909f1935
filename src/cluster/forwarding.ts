import type { Consumers } from '../consume/consumers.ts';
import type { Config } from '../core/config.ts';
import type { Log } from '../core/log.ts';
import { ByteBudget } from '../forward/byte-budget.ts';
import { Control } from '../forward/control.ts';
import { DeadLetters } from '../forward/dead-letters.ts';
import { Forwarding } from '../forward/forwarding.ts';
import { Readings } from '../forward/log-source.ts';
import { type ForwarderJournal, forwarderKey } from '../forward/tables.ts';
import type { Forwarders } from '../registry/forwarders.ts';

export interface ForwardingOptions {
  journal: ForwarderJournal;
  forwarders: Forwarders;
  consumers: Consumers;
  shards: number;
  config: Config;
  log: Log;
}

/** What sends records on, on the main thread. */
export interface RunningForwarding {
  control: Control;
  /** Before the consumers: what is under way is given up, and goes again after the next start. */
  stop(): Promise<void>;
}

export async function startForwarding({
  journal,
  forwarders,
  consumers,
  ...given
}: ForwardingOptions): Promise<RunningForwarding> {
  const letters = new DeadLetters(journal, given.config.forwardDeadLettersMax);
  const readings = new Readings(consumers);
  const budget = new ByteBudget(given.config.forwardBytesMax);
  const options = { ...given, letters, readings, budget };
  const forwarding = new Forwarding(options);
  try {
    for (const id of await readings.deleteOthers(forwarders.all())) await letters.forget(forwarderKey(id));
    for (const forwarder of forwarders.all()) await forwarding.restart(forwarder);
  } catch (error) {
    // Some run already.
    await forwarding.stop();
    throw error;
  }
  return {
    control: new Control({ ...options, forwarders, forwarding }),
    stop: () => forwarding.stop(),
  };
}
