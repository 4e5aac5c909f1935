import { EventLoopBudget } from '../../core/async.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { Reconciler } from '../../declarations/reconciler.ts';
import type { Hold } from '../../domain/hold.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import type { Subscriptions } from './delivery/log-source.ts';
import { type ForwarderDeadLetters, forwarderKey } from './forwarder-dead-letters.ts';
import type { ForwarderHour, ForwarderStatus, ForwarderTrial, ForwarderWork } from './forwarder-work.ts';
import type { Forwarding } from './forwarding.ts';
import { unreachableReason } from './senders/reachability.ts';

export interface ForwarderWorkOptions {
  config: { readonly forwardHosts: string };
  forwarders: Forwarders;
  forwarding: Forwarding;
  subscriptions: Subscriptions;
  letters: ForwarderDeadLetters;
  hold: Hold;
  log: Log;
}

/** The forwarders that run here: makes them follow their declarations, and tells how they fare. */
export class LocalForwarderWork implements ForwarderWork {
  readonly #options: ForwarderWorkOptions;
  readonly #budget = new EventLoopBudget();
  readonly #reconciler: Reconciler<Forwarder>;

  constructor(options: ForwarderWorkOptions) {
    this.#options = options;
    this.#reconciler = new Reconciler({
      declarations: options.forwarders,
      apply: (forwarder) => options.forwarding.apply(forwarder),
      log: options.log,
    });
  }

  /** Starts all forwarders, and makes each follow its declaration from now on. */
  async start(): Promise<void> {
    const { forwarders, subscriptions, letters } = this.#options;
    // Deleted without a leader, or while it was stopped.
    for (const id of await subscriptions.deleteOthers(forwarders.all()))
      await letters.forget(forwarderKey(id));
    await this.#reconciler.start();
  }

  async stop(): Promise<void> {
    await this.#reconciler.stop();
    await this.#options.forwarding.stop();
  }

  followed(): Promise<void> {
    return this.#reconciler.settled();
  }

  async list(fleetId: string): Promise<ForwarderStatus[]> {
    const logEnds = await this.#options.subscriptions.logEnds();
    const forwarders = this.#options.forwarders.list(fleetId);
    return Promise.all(forwarders.map((one) => this.#statusAt(one, logEnds)));
  }

  async *all(): AsyncGenerator<ForwarderStatus> {
    const logEnds = await this.#options.subscriptions.logEnds();
    for (const forwarder of this.#options.forwarders.all()) {
      await this.#budget.take();
      yield await this.#statusAt(forwarder, logEnds);
    }
  }

  async get(fleetId: string, name: string): Promise<ForwarderStatus> {
    await this.followed();
    const logEnds = await this.#options.subscriptions.logEnds();
    return this.#statusAt(this.#options.forwarders.get(fleetId, name), logEnds);
  }

  async hour(fleetId: string, name: string): Promise<ForwarderHour> {
    return this.#options.forwarding.stats(this.#options.forwarders.get(fleetId, name)).hour();
  }

  async unreachable(fleetId: string, name: string): Promise<string | undefined> {
    const { forwarders, config } = this.#options;
    return unreachableReason(fleetId, forwarders.get(fleetId, name).destination, config.forwardHosts);
  }

  async test(fleetId: string, name: string): Promise<ForwarderTrial> {
    return this.#options.forwarding.test(this.#options.forwarders.get(fleetId, name));
  }

  async #statusAt(forwarder: Forwarder, logEnds: readonly number[]): Promise<ForwarderStatus> {
    const { forwarding, subscriptions, letters, hold } = this.#options;
    const stats = forwarding.stats(forwarder);
    const lag = (await subscriptions.open(forwarder)?.lag(logEnds)) ?? {
      behind: 0,
      secondsBehind: 0,
      lost: 0,
    };
    return {
      forwarder,
      state: !forwarder.enabled
        ? 'paused'
        : hold.isHeld
          ? 'held'
          : stats.blocked > 0
            ? 'dead_letters_full'
            : stats.nextAttempts.size > 0
              ? 'backing_off'
              : 'running',
      ...lag,
      deadLetters: letters.count(forwarderKey(forwarder.id)),
      counts: stats.counts,
      lastDeliveredAtMs: stats.lastDeliveredAtMs,
      lastError: stats.lastError,
      nextAttemptAtMs: stats.nextAttempts.size > 0 ? Math.min(...stats.nextAttempts.values()) : undefined,
    };
  }
}
