import { recordKinds } from '../../../domain/records/record.ts';
import type { Consumer } from '../../consumers/consumer.ts';
import type { Consumers } from '../../consumers/consumers.ts';
import type { Forwarder } from '../declaration/forwarder.ts';
import type { ForwarderStatus } from '../forwarder-work.ts';
import type { Source } from './source.ts';

/** Payload bytes of one batch; the first record is exempt. */
const batchBytesMax = 1_048_576;
/** Ten years: a loop has its batch until it releases it or the server stops, and an outage may take days. */
const leaseSeconds = 315_360_000;

/** The colon keeps it apart from operators' consumer names. */
const namePrefix = 'forwarder:';

/** How far a forwarder is behind the logs, and what it missed. */
type Lag = Pick<ForwarderStatus, 'behind' | 'secondsBehind' | 'lost'>;

/** A forwarder's cursors in the logs: a consumer whose name no operator can use. */
export class Subscription {
  readonly #consumer: Consumer;
  readonly #forwarder: Forwarder;

  constructor(consumer: Consumer, forwarder: Forwarder) {
    this.#consumer = consumer;
    this.#forwarder = forwarder;
  }

  /** Source of one shard's log. */
  source(shard: number): Source {
    const worker = this.#forwarder.name;
    return {
      fetch: (recordsMax, signal) =>
        this.#consumer.fetch({ recordsMax, bytesMax: batchBytesMax, worker, shard }, signal),
    };
  }

  async lag(logEnds: readonly number[]): Promise<Lag> {
    const shards = await this.#consumer.status(logEnds);
    return {
      behind: shards.reduce((sum, { behind }) => sum + behind, 0),
      secondsBehind: Math.max(0, ...shards.map(({ secondsBehind }) => secondsBehind)),
      lost: shards.reduce((sum, { lost }) => sum + lost, 0),
    };
  }
}

/** The subscriptions of all forwarders. */
export class Subscriptions {
  readonly #consumers: Consumers;

  constructor(consumers: Consumers) {
    this.#consumers = consumers;
  }

  /** Settles once durable. An existing subscription keeps its cursors. */
  async put(forwarder: Forwarder): Promise<void> {
    const { kinds = [], schemas = [] } = forwarder.filter;
    const settings = { kinds: recordKinds.filter((kind) => kinds.includes(kind)), schemas, leaseSeconds };
    await this.#consumers.put(forwarder.fleetId, consumerName(forwarder), settings, forwarder);
  }

  /** Log end of every shard. */
  logEnds(): Promise<number[]> {
    return this.#consumers.logEnds();
  }

  open(forwarder: Forwarder): Subscription | undefined {
    const consumer = this.#consumers.find(forwarder.fleetId, consumerName(forwarder));
    return consumer && new Subscription(consumer, forwarder);
  }

  /** Deletes subscriptions without forwarder, left by a stop during a creation or deletion. Returns the forwarder ids. */
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
