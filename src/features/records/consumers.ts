import { Mutex } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { type Log, logFailure } from '../../core/telemetry/log.ts';
import { generateUuid } from '../../core/uuid.ts';
import { Consumer, type ConsumerSettings, type ConsumerStart } from './consumer.ts';
import {
  type ConsumerJournal,
  consumerKey,
  consumerShardKey,
  decodeConsumer,
  encodeConsumer,
  type KeptConsumer,
  positionValue,
  readConsumerKey,
  removeConsumerRows,
} from './consumer-tables.ts';
import { EventLoopBudget } from './event-loop-budget.ts';
import type { LogReader } from './log-reader.ts';

const upkeepMs = 5_000;
/** Of a new one that is given none: all records, for as long as is usual. */
const unset: ConsumerSettings = { kinds: [], schemas: [], leaseSeconds: undefined };

export interface ConsumersOptions {
  reader: LogReader;
  journal: ConsumerJournal;
  log: Log;
}

/** All consumers of all fleets, by name: those of operators and those that the server makes for itself. */
export class Consumers {
  readonly #options: ConsumersOptions;
  readonly #consumers = new Map<string, Consumer>();
  readonly #turns = new EventLoopBudget();
  readonly #upkeepTimer: NodeJS.Timeout;
  readonly #changes = new Mutex();

  private constructor(options: ConsumersOptions) {
    this.#options = options;
    this.#upkeepTimer = setInterval(() => {
      void this.#storeOrSay('consumers: their places cannot be stored now');
    }, upkeepMs);
  }

  static async open(options: ConsumersOptions): Promise<Consumers> {
    const consumers = new Consumers(options);
    const logEnds = await options.reader.ends();
    for (const { key, value } of options.journal.tables.consumers.getRange({})) {
      const { fleetId, name } = readConsumerKey(key);
      consumers.#add(fleetId, name, decodeConsumer(value), logEnds);
    }
    return consumers;
  }

  all(): Iterable<Consumer> {
    return this.#consumers.values();
  }

  /** Of every shard: the position that its next record gets. */
  logEnds(): Promise<number[]> {
    return this.#options.reader.ends();
  }

  /** All of them, a few in each turn of the event loop, with the ends of the logs as they were at the beginning. */
  async *walk(): AsyncGenerator<{ consumer: Consumer; logEnds: readonly number[] }> {
    const logEnds = await this.logEnds();
    for (const consumer of [...this.all()]) {
      await this.#turns.take();
      yield { consumer, logEnds };
    }
  }

  find(fleetId: string, name: string): Consumer | undefined {
    return this.#consumers.get(fleetId + name);
  }

  /**
   * The consumer of that name, with these settings: one that exists keeps its place and the settings that are not
   * given, a new one begins at `start`. `mayAdd` is asked before one is made, and throws.
   */
  put(
    fleetId: string,
    name: string,
    settings: Partial<ConsumerSettings>,
    start: ConsumerStart,
    mayAdd: () => void = () => {},
  ): Promise<{ consumer: Consumer; isNew: boolean }> {
    return this.#changes.run(async () => {
      const known = this.find(fleetId, name);
      if (known === undefined) mayAdd();
      const before = known?.kept ?? { id: generateUuid(), createdAtMs: Date.now(), ...unset };
      const kept: KeptConsumer = { ...before, ...settings };
      const { journal, reader } = this.#options;
      const logEnds = await reader.ends();
      const positions = known === undefined ? await this.#positions(start, logEnds) : [];
      await journal.commit(() => {
        journal.tables.consumers.putSync(consumerKey(fleetId, name), encodeConsumer(kept));
        for (const [shard, position] of positions.entries()) {
          journal.tables.consumerPositions.putSync(
            consumerShardKey(kept.id, shard),
            positionValue(position, 0),
          );
        }
      });
      if (known === undefined) journal.refresh();
      known?.change(kept);
      return {
        consumer: known ?? this.#add(fleetId, name, kept, logEnds),
        isNew: known === undefined,
      };
    });
  }

  /** @throws ApiError consumer_not_found. */
  delete(fleetId: string, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const consumer = this.find(fleetId, name);
      if (consumer === undefined) throw new ApiError('consumer_not_found');
      const { tables } = this.#options.journal;
      const { id } = consumer.kept;
      const logEnds = await this.#options.reader.ends();
      consumer.end();
      try {
        await this.#options.journal.commit(() => {
          tables.consumers.removeSync(consumerKey(fleetId, name));
          removeConsumerRows(tables.consumerPositions, id);
          removeConsumerRows(tables.consumerDone, id);
        });
        this.#consumers.delete(fleetId + name);
      } catch (error) {
        this.#add(fleetId, name, consumer.kept, logEnds);
        throw error;
      }
    });
  }

  /** Whoever waits for records is answered none, and so is who asks from now on. */
  stopWaiting(): void {
    for (const consumer of this.all()) consumer.stopGiving();
  }

  /** Has all places on disk; the journal is its owner's to close. */
  async stop(): Promise<void> {
    clearInterval(this.#upkeepTimer);
    await this.#changes.settled();
    this.stopWaiting();
    await this.#storeOrSay('consumers: their last places are not stored; what was passed is looked at again');
  }

  #add(fleetId: string, name: string, kept: KeptConsumer, logEnds: readonly number[]): Consumer {
    const { reader, journal } = this.#options;
    const consumer = new Consumer({ fleetId, name, kept, journal, reader, logEnds });
    this.#consumers.set(fleetId + name, consumer);
    return consumer;
  }

  async #positions(start: ConsumerStart, logEnds: readonly number[]): Promise<number[]> {
    if (start === 'earliest') return logEnds.map(() => 0);
    if (start === 'latest') return [...logEnds];
    return Promise.all(this.#options.reader.shards.map((shard) => shard.positionAt(start)));
  }

  async #storeOrSay(otherwise: string): Promise<void> {
    await this.#storeProgress().catch((error: unknown) => logFailure(this.#options.log, error, otherwise));
  }

  async #storeProgress(): Promise<void> {
    const moved = [...this.all()].filter(({ isStored }) => !isStored);
    if (moved.length === 0) return;
    let stored: (() => void)[] = [];
    await this.#options.journal.commit(() => {
      stored = moved.map((consumer) => consumer.store());
    });
    for (const done of stored) done();
  }
}
