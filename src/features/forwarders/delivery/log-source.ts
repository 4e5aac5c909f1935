import { recordKinds } from '../../../domain/records/record.ts';
import type { Consumer } from '../../records/consumer.ts';
import type { Consumers } from '../../records/consumers.ts';
import type { Forwarder, ForwarderStart } from '../declaration/forwarder.ts';
import type { Source } from './source.ts';

/** Payload bytes of one batch, but for its first record. */
const batchBytesMax = 1_048_576;
/** A batch is its lane's until that lets go of it, or the server ends: an outage may take days. */
const leaseSeconds = 315_360_000;

/** No name that an operator gives begins so. */
const namePrefix = 'forwarder:';

/** The place that a forwarder has in the logs: a consumer that no operator's can have the name of. */
export class Subscription {
  readonly #consumer: Consumer;
  readonly #forwarder: Forwarder;

  constructor(consumer: Consumer, forwarder: Forwarder) {
    this.#consumer = consumer;
    this.#forwarder = forwarder;
  }

  /** The log of one shard. */
  source(shard: number): Source {
    const worker = this.#forwarder.name;
    return {
      fetch: (recordsMax, signal) =>
        this.#consumer.fetch({ recordsMax, bytesMax: batchBytesMax, worker, shard }, signal),
    };
  }

  progress(logEnds: readonly number[]): { behind: number; lost: number } {
    return this.#consumer.progress(logEnds);
  }
}

/** Where forwarders read. */
export class Subscriptions {
  readonly #consumers: Consumers;

  constructor(consumers: Consumers) {
    this.#consumers = consumers;
  }

  /** Durable when it settles. One that is there keeps its place. `start`: also a time. */
  async put(forwarder: Forwarder, start: ForwarderStart | number): Promise<void> {
    const { kinds = [], schemas = [] } = forwarder.filter;
    const settings = { kinds: recordKinds.filter((kind) => kinds.includes(kind)), schemas, leaseSeconds };
    const front = start === 'beginning' ? 'earliest' : start === 'now' ? 'latest' : start;
    await this.#consumers.put(forwarder.fleetId, consumerName(forwarder), settings, front);
  }

  /** Of every shard. */
  logEnds(): Promise<number[]> {
    return this.#consumers.logEnds();
  }

  open(forwarder: Forwarder): Subscription | undefined {
    const consumer = this.#consumers.find(forwarder.fleetId, consumerName(forwarder));
    return consumer && new Subscription(consumer, forwarder);
  }

  /** Forgets the places of forwarders that are not there: the server ended before one was made, or gone. Answers whose. */
  async deleteOthers(forwarders: readonly Forwarder[]): Promise<string[]> {
    const known = new Set(forwarders.map(({ id }) => id));
    const others = [...this.#consumers.all()]
      .map(({ fleetId, name }) => ({ fleetId, name, id: name.slice(namePrefix.length) }))
      .filter(({ name, id }) => name.startsWith(namePrefix) && !known.has(id));
    for (const { fleetId, name } of others) await this.#consumers.delete(fleetId, name);
    return others.map(({ id }) => id);
  }

  async delete(forwarder: Forwarder): Promise<void> {
    if (this.open(forwarder) === undefined) return;
    await this.#consumers.delete(forwarder.fleetId, consumerName(forwarder));
  }
}

function consumerName({ id }: Forwarder): string {
  return namePrefix + id;
}
