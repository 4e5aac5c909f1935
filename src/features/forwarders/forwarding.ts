import { unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import { deviceKeyOf } from '../../core/identity.ts';
import { generateUuid } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import { clientKeyProblem } from './declaration/client-key.ts';
import { isHostAllowed } from './declaration/forward-hosts.ts';
import type { Forwarder } from './declaration/forwarder.ts';
import type { Forwarders } from './declaration/forwarders.ts';
import { ForwarderStats } from './delivery/delivery-loop.ts';
import { ForwarderWorker, type ForwarderWorkerOptions } from './delivery/forwarder-worker.ts';
import type { Subscriptions } from './delivery/log-source.ts';
import { hostsOf, kindOf } from './destinations/destinations.ts';
import { forwarderKey } from './forwarder-dead-letters.ts';
import type { ForwarderTrial } from './forwarder-work.ts';
import type { Sender } from './senders/sender.ts';

/** Sender for a forwarder that was declared before what it is was disallowed. */
function failing(reason: string): Sender {
  return { send: async () => ({ result: 'failed', reason }), close: async () => {} };
}

/** Tests at a time. */
const testsMax = 16;
const testDeviceId = '0000000000';
const testSchema = 'fleetpost-test';

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
  readonly #tests = new FairShare(testsMax);
  /** Ends tests under way. */
  readonly #stopping = new AbortController();
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

  /** Sends one test event by a sender of its own, also for a paused forwarder. @throws ApiError unavailable. */
  async test(forwarder: Forwarder): Promise<ForwarderTrial> {
    if (!this.#tests.take(forwarder.fleetId)) throw unavailable('Too many tests of forwarders. Retry later.');
    const startMs = performance.now();
    try {
      const sender = await senderOf(forwarder, this.#options.config.forwardHosts);
      const outcome = await sender
        .send([testRecord(forwarder)], this.#stopping.signal)
        .finally(() => sender.close());
      const msg = outcome.result === 'delivered' ? undefined : outcome.reason;
      return { result: outcome.result, msg, milliseconds: Math.round(performance.now() - startMs) };
    } finally {
      this.#tests.release(forwarder.fleetId);
    }
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
    this.#stopping.abort();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }
}

/** A record that no device has sent, and that is in no log. */
function testRecord({ fleetId }: Forwarder): StoredRecord {
  return {
    position: 0,
    id: generateUuid(),
    device: deviceKeyOf(fleetId, testDeviceId),
    kind: 'message',
    schema: testSchema,
    payload: Buffer.from('{"test":true}'),
    storedAtMs: Date.now(),
    isRelocated: false,
  };
}

async function senderOf(forwarder: Forwarder, forwardHosts: string): Promise<Sender> {
  const { destination, secrets } = forwarder;
  if (!hostsOf(destination).every((host) => isHostAllowed(host, forwardHosts))) {
    return failing('The host is not allowed: add it to forwardHosts.');
  }
  const problem = clientKeyProblem(secrets.tls);
  if (problem !== undefined) return failing(problem);
  return kindOf(destination).openSender(forwarder, destination, forwardHosts);
}
