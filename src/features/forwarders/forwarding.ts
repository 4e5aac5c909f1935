import { forwarderKey } from './dead-letters.ts';
import { isHostAllowed } from './declaration/forward-hosts.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import { hostsOf } from './declaration/forwarder-draft.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { ForwarderStats } from './delivery/delivery-loop.ts';
import { ForwarderWorker, type ForwarderWorkerOptions } from './delivery/forwarder-worker.ts';
import type { Subscriptions } from './delivery/log-source.ts';
import type { Sender } from './senders/sender.ts';

/** Sender for a forwarder declared before its host was disallowed. */
const forbidden: Sender = {
  send: async () => ({ result: 'failed', reason: 'The host is not allowed: add it to forwardHosts.' }),
  close: async () => {},
};

export interface ForwardingOptions extends ForwarderWorkerOptions {
  config: ForwarderWorkerOptions['config'] & { readonly forwardHosts: string };
  forwarders: Forwarders;
  subscriptions: Subscriptions;
}

/** Runs all enabled forwarders, on the main thread. */
export class Forwarding {
  readonly #options: ForwardingOptions;
  readonly #workers = new Map<string, ForwarderWorker>();
  readonly #stats = new Map<string, ForwarderStats>();
  #isStopping = false;

  constructor(options: ForwardingOptions) {
    this.#options = options;
  }

  stats({ id }: Forwarder): ForwarderStats {
    const stats = this.#stats.get(id) ?? new ForwarderStats();
    this.#stats.set(id, stats);
    return stats;
  }

  /** Restarts a forwarder as it is declared now, stops a paused one, and removes everything of a deleted one. */
  async apply(declared: Forwarder): Promise<void> {
    await this.#end(declared);
    const { forwarders, subscriptions, letters, config } = this.#options;
    const forwarder = forwarders.declared(declared);
    if (forwarder === undefined) {
      this.#stats.delete(declared.id);
      await letters.forget(forwarderKey(declared.id));
      // Last: by it the next start finds the rest of an interrupted deletion.
      await subscriptions.delete(declared);
      return;
    }
    await subscriptions.put(forwarder);
    if (!forwarder.enabled || this.#isStopping) return;
    const subscription = subscriptions.open(forwarder);
    if (subscription === undefined) throw new Error('a forwarder has a subscription');
    const sender = await senderOf(forwarder, config.forwardHosts);
    if (this.#isStopping) return sender.close();
    this.#workers.set(
      forwarder.id,
      new ForwarderWorker(forwarder, subscription, sender, this.stats(forwarder), this.#options),
    );
  }

  wakeReplays({ id }: Forwarder): void {
    this.#workers.get(id)?.wakeReplays();
  }

  /** Settles once nothing more is sent or written for it. */
  async #end({ id }: Forwarder): Promise<void> {
    const worker = this.#workers.get(id);
    this.#workers.delete(id);
    await worker?.stop();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }
}

/** Loads the library of a sender when the first forwarder needs it. */
async function senderOf(forwarder: Forwarder, forwardHosts: string): Promise<Sender> {
  const { destination } = forwarder;
  if (!hostsOf(destination).every((host) => isHostAllowed(host, forwardHosts))) return forbidden;
  if (destination.type === 'webhook') {
    const { WebhookSender } = await import('./senders/webhook.ts');
    return new WebhookSender(forwarder, destination, forwardHosts);
  }
  const { NatsSender } = await import('./senders/nats.ts');
  return new NatsSender(forwarder, destination, forwardHosts);
}
