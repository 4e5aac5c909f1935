import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { Consumer, ConsumerSettings, ConsumerStart } from './consumer.ts';
import {
  type ConsumerBatch,
  type ConsumerFetch,
  type ConsumerService,
  type ConsumerShardStatus,
  type ConsumerStatus,
  consumerNamePattern,
} from './consumer-service.ts';
import type { Consumers } from './consumers.ts';

/**
 * Bounds of one batch in records and payload bytes (the first record is exempt), to bound the memory of an answer
 * and of a worker.
 */
const batchRecordsMax = 1_000;
const batchBytesMax = 4 * 1024 * 1024;

export interface ConsumerLimits {
  consumersPerFleetMax: number;
  consumerFetchesMax: number;
}

/** Serves operators' consumers to the admin API; leaves out those of forwarders. */
export class LocalConsumerService implements ConsumerService {
  readonly #consumers: Consumers;
  readonly #limits: ConsumerLimits;
  readonly #fetches: FairShare;

  constructor(consumers: Consumers, limits: ConsumerLimits) {
    this.#consumers = consumers;
    this.#limits = limits;
    this.#fetches = new FairShare(limits.consumerFetchesMax);
  }

  async list(fleetId: string): Promise<ConsumerStatus[]> {
    const found = [...this.#ofFleet(fleetId)].sort((one, other) => (one.name < other.name ? -1 : 1));
    return Promise.all(found.map(statusOf));
  }

  async *all(): AsyncGenerator<{ fleetId: string; name: string; shards: readonly ConsumerShardStatus[] }> {
    for await (const { consumer, logEnds } of this.#consumers.walk()) {
      const { fleetId, name } = consumer;
      if (consumerNamePattern.test(name)) yield { fleetId, name, shards: await consumer.status(logEnds) };
    }
  }

  async get(fleetId: string, name: string): Promise<ConsumerStatus> {
    return statusOf(this.#find(fleetId, name));
  }

  async put(
    fleetId: string,
    name: string,
    settings: Partial<ConsumerSettings>,
    start: ConsumerStart,
  ): Promise<{ status: ConsumerStatus; isNew: boolean }> {
    const { consumersPerFleetMax } = this.#limits;
    const { consumer, isNew } = await this.#consumers.put(fleetId, name, settings, start, () => {
      if ([...this.#ofFleet(fleetId)].length < consumersPerFleetMax) return;
      throw new ApiError('limit_reached', {
        msg: `Too many consumers in this fleet (consumersPerFleetMax is ${consumersPerFleetMax}). Delete one first.`,
      });
    });
    return { status: await statusOf(consumer), isNew };
  }

  async change(fleetId: string, name: string, change: { enabled: boolean }): Promise<ConsumerStatus> {
    this.#find(fleetId, name);
    return statusOf(await this.#consumers.change(fleetId, name, change));
  }

  async delete(fleetId: string, name: string): Promise<void> {
    this.#find(fleetId, name);
    await this.#consumers.delete(fleetId, name);
  }

  async fetch(
    fleetId: string,
    name: string,
    { recordsMax, worker }: ConsumerFetch,
    signal: AbortSignal,
  ): Promise<ConsumerBatch | 'paused' | undefined> {
    const consumer = this.#find(fleetId, name);
    if (!this.#fetches.take(fleetId)) {
      throw unavailable(
        'Too many waiting consumer fetches, of this fleet or of all (consumerFetchesMax). Retry later.',
      );
    }
    try {
      const batch = await consumer.fetch(
        { recordsMax: Math.min(recordsMax, batchRecordsMax), bytesMax: batchBytesMax, worker },
        signal,
      );
      return batch ?? (consumer.enabled ? undefined : 'paused');
    } finally {
      this.#fetches.release(fleetId);
    }
  }

  async acknowledge(fleetId: string, name: string, batchId: string): Promise<number> {
    return this.#find(fleetId, name).acknowledge(batchId);
  }

  async release(fleetId: string, name: string, batchId: string): Promise<number> {
    return this.#find(fleetId, name).release(batchId);
  }

  *#ofFleet(fleetId: string): Generator<Consumer> {
    for (const consumer of this.#consumers.all()) {
      if (consumer.fleetId === fleetId && consumerNamePattern.test(consumer.name)) yield consumer;
    }
  }

  #find(fleetId: string, name: string): Consumer {
    const consumer = consumerNamePattern.test(name) ? this.#consumers.find(fleetId, name) : undefined;
    if (consumer === undefined) throw new ApiError('consumer_not_found');
    return consumer;
  }
}

async function statusOf(consumer: Consumer): Promise<ConsumerStatus> {
  const { name, leaseSeconds, enabled, declaration } = consumer;
  const { createdAtMs, kinds, schemas } = declaration;
  return { name, createdAtMs, kinds, schemas, leaseSeconds, enabled, shards: await consumer.status() };
}
