import type { Log } from '../../../core/telemetry/log.ts';
import type { ForwarderConfig } from '../config.ts';
import type { ForwarderDeadLetters } from '../dead-letters.ts';
import type { Forwarder } from '../declaration/forwarder.ts';
import type { Sender } from '../senders/sender.ts';
import { forwarderKey } from '../tables.ts';
import type { ByteBudget } from './byte-budget.ts';
import type { ForwarderStats } from './delivery-loop.ts';
import { DeliveryLoop } from './delivery-loop.ts';
import type { Subscription } from './log-source.ts';
import { ReplaySource } from './source.ts';

export interface ForwarderWorkerOptions {
  config: Pick<ForwarderConfig, 'forwardRetryMilliseconds' | 'forwardRetrySecondsMax'>;
  letters: ForwarderDeadLetters;
  budget: ByteBudget;
  /** How many there are. */
  shards: number;
  log: Log;
}

/** One forwarder at work: a lane for the log of each shard, and one for dead letters that are sent once more. */
export class ForwarderWorker {
  readonly #stopping = new AbortController();
  readonly #sender: Sender;
  readonly #replays: ReplaySource;
  readonly #lanes: Promise<void>[];

  constructor(
    forwarder: Forwarder,
    reading: Subscription,
    sender: Sender,
    progress: ForwarderStats,
    { config, letters, budget, shards, log }: ForwarderWorkerOptions,
  ) {
    const key = forwarderKey(forwarder.id);
    this.#sender = sender;
    this.#replays = new ReplaySource(letters, key);
    const logs = Array.from({ length: shards }, (_, shard) => reading.source(shard));
    this.#lanes = [...logs, this.#replays].map((source) =>
      new DeliveryLoop({
        forwarder,
        source,
        sender,
        budget,
        backoff: {
          firstMs: config.forwardRetryMilliseconds,
          longestMs: config.forwardRetrySecondsMax * 1_000,
        },
        progress,
        log,
        bury: (record, reason) => letters.add(key, record, reason),
        signal: this.#stopping.signal,
      }).run(),
    );
  }

  /** Dead letters were marked to be sent once more. */
  lookForReplays(): void {
    this.#replays.look();
  }

  /** Gives back what is under way: nothing of it is acknowledged that was not taken. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#lanes, this.#sender.close()]);
  }
}
