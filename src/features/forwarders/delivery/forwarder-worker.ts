import type { Log } from '../../../core/telemetry/log.ts';
import type { Hold } from '../../../domain/hold.ts';
import type { ForwarderConfig } from '../config.ts';
import type { Forwarder } from '../declaration/forwarder.ts';
import { type ForwarderDeadLetters, forwarderKey } from '../forwarder-dead-letters.ts';
import type { Sender } from '../senders/sender.ts';
import type { ByteBudget } from './byte-budget.ts';
import type { ForwarderStats } from './delivery-loop.ts';
import { DeliveryLoop } from './delivery-loop.ts';
import type { Subscription } from './log-source.ts';
import { ReplaySource } from './source.ts';

export interface ForwarderWorkerOptions {
  config: Pick<ForwarderConfig, 'forwardRetryMilliseconds' | 'forwardRetrySecondsMax'>;
  letters: ForwarderDeadLetters;
  budget: ByteBudget;
  /** Number of shards. */
  shards: number;
  hold: Hold;
  log: Log;
}

/** Runs one forwarder: a delivery loop for the log of each shard, and one for replayed dead letters. */
export class ForwarderWorker {
  readonly #stopping = new AbortController();
  readonly #sender: Sender;
  readonly #replays: ReplaySource;
  readonly #loops: Promise<void>[];

  constructor(
    forwarder: Forwarder,
    subscription: Subscription,
    sender: Sender,
    stats: ForwarderStats,
    { config, letters, budget, shards, hold, log }: ForwarderWorkerOptions,
  ) {
    const key = forwarderKey(forwarder.id);
    this.#sender = sender;
    this.#replays = new ReplaySource(letters, key);
    const logs = Array.from({ length: shards }, (_, shard) => subscription.source(shard));
    this.#loops = [...logs, this.#replays].map((source) =>
      new DeliveryLoop({
        forwarder,
        source,
        sender,
        budget,
        backoff: {
          firstMs: config.forwardRetryMilliseconds,
          longestMs: config.forwardRetrySecondsMax * 1_000,
        },
        stats,
        log,
        hold,
        deadLetter: (record, reason) => letters.add(key, record, reason),
        signal: this.#stopping.signal,
      }).run(),
    );
  }

  /** Picks up dead letters that were queued to be sent again. */
  wakeReplays(): void {
    this.#replays.wake();
  }

  /** Abandons attempts under way, without acknowledging their batches. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#loops, this.#sender.close()]);
  }
}
