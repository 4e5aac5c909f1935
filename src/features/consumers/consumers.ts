import { isDeepStrictEqual } from 'node:util';
import { EventLoopBudget, Mutex } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { type Log, logFailure } from '../../core/telemetry/log.ts';
import { generateUuid } from '../../core/uuid.ts';
import { Collection } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { Cursors } from '../records/cursor.ts';
import type { LogFollower } from '../records/log-follower.ts';
import { Consumer, type ConsumerSettings, type ConsumerStart, type DeclaredStart } from './consumer.ts';
import { type ConsumerDeclaration, consumerTable } from './consumer-tables.ts';

const storeIntervalMs = 5_000;
/** Settings of a new consumer: all records, default lease. */
const defaultSettings: ConsumerSettings = { kinds: [], schemas: [], leaseSeconds: undefined, enabled: true };

export interface ConsumersOptions {
  follower: LogFollower;
  journal: Journal;
  log: Log;
}

/** All consumers of all fleets, by name: declared by operators, or made by the server for forwarders. */
export class Consumers {
  readonly #options: ConsumersOptions;
  readonly #declarations: Collection<[fleetId: string, name: string], ConsumerDeclaration>;
  readonly #cursors: Cursors;
  readonly #consumers = new Map<string, Consumer>();
  readonly #budget = new EventLoopBudget();
  readonly #storeTimer: NodeJS.Timeout;
  readonly #changes = new Mutex();

  private constructor(options: ConsumersOptions) {
    this.#options = options;
    this.#declarations = new Collection(options.journal, consumerTable);
    this.#cursors = new Cursors(options.journal);
    this.#storeTimer = setInterval(() => {
      void this.#storeOrLog('consumers: storing cursors failed; retrying');
    }, storeIntervalMs);
  }

  static async open(options: ConsumersOptions): Promise<Consumers> {
    const consumers = new Consumers(options);
    const logEnds = await options.follower.ends();
    for (const [[fleetId, name], declaration] of consumers.#declarations.entries([])) {
      consumers.#add(fleetId, name, declaration, logEnds);
    }
    return consumers;
  }

  all(): Iterable<Consumer> {
    return this.#consumers.values();
  }

  /** For every shard, the position of its next record. */
  logEnds(): Promise<number[]> {
    return this.#options.follower.ends();
  }

  /** Yields all consumers, a few per event loop turn, with the log ends as they were at the start. */
  async *walk(): AsyncGenerator<{ consumer: Consumer; logEnds: readonly number[] }> {
    const logEnds = await this.logEnds();
    for (const consumer of [...this.all()]) {
      await this.#budget.take();
      yield { consumer, logEnds };
    }
  }

  find(fleetId: string, name: string): Consumer | undefined {
    return this.#consumers.get(fleetId + name);
  }

  /**
   * Creates or changes a consumer. An existing one keeps its cursors and absent settings; a new one begins at `start`.
   * `mayAdd` is called before one is created, and throws to refuse it.
   */
  put(
    fleetId: string,
    name: string,
    settings: Partial<ConsumerSettings>,
    start: ConsumerStart | DeclaredStart,
    mayAdd: () => void = () => {},
  ): Promise<{ consumer: Consumer; isNew: boolean }> {
    return this.#changes.run(async () => {
      const known = this.find(fleetId, name);
      if (known === undefined) mayAdd();
      const before = known?.declaration ?? {
        id: generateUuid(),
        createdAtMs: Date.now(),
        ...defaultSettings,
      };
      const declaration: ConsumerDeclaration = { ...before, ...settings };
      if (known !== undefined && isDeepStrictEqual(declaration, before)) {
        return { consumer: known, isNew: false };
      }
      const { journal, follower } = this.#options;
      const logEnds = await follower.ends();
      const positions = known === undefined ? await this.#positions(start, logEnds) : [];
      await journal.commit(() => {
        this.#declarations.put([fleetId, name], declaration);
        if (known === undefined) this.#cursors.place(declaration.id, positions);
      });
      if (known === undefined) journal.refresh();
      known?.change(declaration);
      return {
        consumer: known ?? this.#add(fleetId, name, declaration, logEnds),
        isNew: known === undefined,
      };
    });
  }

  /** As `put`, of one that exists. @throws ApiError consumer_not_found. */
  async change(fleetId: string, name: string, settings: Partial<ConsumerSettings>): Promise<Consumer> {
    const { consumer } = await this.put(fleetId, name, settings, 'latest', () => {
      throw new ApiError('consumer_not_found');
    });
    return consumer;
  }

  /** @throws ApiError consumer_not_found. */
  delete(fleetId: string, name: string): Promise<void> {
    return this.#changes.run(async () => {
      const consumer = this.find(fleetId, name);
      if (consumer === undefined) throw new ApiError('consumer_not_found');
      const { id } = consumer.declaration;
      const logEnds = await this.#options.follower.ends();
      consumer.end();
      try {
        await this.#options.journal.commit(() => {
          this.#declarations.delete([fleetId, name]);
          this.#cursors.delete(id);
        });
        this.#consumers.delete(fleetId + name);
      } catch (error) {
        this.#add(fleetId, name, consumer.declaration, logEnds);
        throw error;
      }
    });
  }

  /** Answers waiting and later fetches without records. */
  stopWaiting(): void {
    for (const consumer of this.all()) consumer.stopServing();
  }

  /** Stores all cursors. The journal is closed by its owner. */
  async stop(): Promise<void> {
    clearInterval(this.#storeTimer);
    await this.#changes.settled();
    this.stopWaiting();
    await this.#storeOrLog('consumers: storing the last cursors failed; records passed since are read again');
  }

  #add(
    fleetId: string,
    name: string,
    declaration: ConsumerDeclaration,
    logEnds: readonly number[],
  ): Consumer {
    const { follower, journal } = this.#options;
    const consumer = new Consumer({ fleetId, name, declaration, journal, follower, logEnds });
    this.#consumers.set(fleetId + name, consumer);
    return consumer;
  }

  async #positions(start: ConsumerStart | DeclaredStart, logEnds: readonly number[]): Promise<number[]> {
    if (typeof start === 'object') {
      const { since, createdAtMs } = start;
      if (since.length !== logEnds.length) return this.#positions(createdAtMs, logEnds);
      // The logs of a backup may end before.
      return logEnds.map((end, shard) => Math.min(end, since[shard] ?? end));
    }
    if (start === 'earliest') return logEnds.map(() => 0);
    if (start === 'latest') return [...logEnds];
    return Promise.all(this.#options.follower.shards.map((shard) => shard.log.positionAt(start)));
  }

  async #storeOrLog(msg: string): Promise<void> {
    await this.#storeCursors().catch((error: unknown) => logFailure(this.#options.log, error, msg));
  }

  async #storeCursors(): Promise<void> {
    const moved = [...this.all()].filter(({ isStored }) => !isStored);
    if (moved.length === 0) return;
    let stored: (() => void)[] = [];
    await this.#options.journal.commit(() => {
      stored = moved.map((consumer) => consumer.store());
    });
    for (const done of stored) done();
  }
}
