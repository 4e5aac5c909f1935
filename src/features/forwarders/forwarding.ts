import { isHostAllowed } from './declaration/forward-hosts.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import { hostsOf } from './declaration/forwarder-draft.ts';
import { ForwarderStats } from './delivery/delivery-loop.ts';
import { ForwarderWorker, type ForwarderWorkerOptions } from './delivery/forwarder-worker.ts';
import type { Subscriptions } from './delivery/log-source.ts';
import type { Sender } from './senders/sender.ts';

/** Of one that was put while its host was allowed. */
const forbidden: Sender = {
  send: async () => ({ result: 'failed', reason: 'Forwarders may not send to its host (forwardHosts).' }),
  close: async () => {},
};

export interface ForwardingOptions extends ForwarderWorkerOptions {
  config: ForwarderWorkerOptions['config'] & { readonly forwardHosts: string };
  readings: Subscriptions;
}

/** All forwarders that are at work, on the main thread. */
export class Forwarding {
  readonly #options: ForwardingOptions;
  readonly #runners = new Map<string, ForwarderWorker>();
  readonly #progress = new Map<string, ForwarderStats>();
  #isStopping = false;

  constructor(options: ForwardingOptions) {
    this.#options = options;
  }

  progress({ id }: Forwarder): ForwarderStats {
    const progress = this.#progress.get(id) ?? new ForwarderStats();
    this.#progress.set(id, progress);
    return progress;
  }

  /** Has it run as it is declared now; a paused one does not. */
  async restart(forwarder: Forwarder): Promise<void> {
    await this.end(forwarder);
    if (!forwarder.enabled || this.#isStopping) return;
    const { readings, config } = this.#options;
    // Without its place when it was made while a backup ran, which copies the places first: all that came since.
    if (readings.open(forwarder) === undefined) await readings.put(forwarder, forwarder.createdAtMs);
    const reading = readings.open(forwarder);
    if (reading === undefined) throw new Error('a forwarder has a place in the logs');
    const sender = await senderOf(forwarder, config.forwardHosts);
    if (this.#isStopping) return sender.close();
    this.#runners.set(
      forwarder.id,
      new ForwarderWorker(forwarder, reading, sender, this.progress(forwarder), this.#options),
    );
  }

  lookForReplays({ id }: Forwarder): void {
    this.#runners.get(id)?.lookForReplays();
  }

  /** Settles when nothing more is sent or written for it. */
  async end({ id }: Forwarder): Promise<void> {
    const runner = this.#runners.get(id);
    this.#runners.delete(id);
    await runner?.stop();
  }

  /** Of one that was deleted. */
  forget({ id }: Forwarder): void {
    this.#progress.delete(id);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#runners.values()].map((runner) => runner.stop()));
  }
}

/** Each with its library, which is loaded when the first one needs it. */
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
