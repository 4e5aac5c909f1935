import { SingleFlight, sleep } from '../../../core/async.ts';
import { unavailable } from '../../../core/errors.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../../../core/telemetry/worker-metrics.ts';
import type { Presence } from '../../../domain/devices/device-query.ts';
import { Hold } from '../../../domain/hold.ts';
import type { RetentionSource } from '../../../domain/log-retention.ts';
import type { StreamSink } from '../../../domain/shard-streams.ts';
import type { Completion } from '../../../domain/write.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import type { Environment } from '../environment/environment.ts';
import { sequenceKey } from '../layout/keys.ts';
import { openTables, type Tables } from '../layout/tables.ts';
import { LogIndexer } from '../log/log-indexer.ts';
import { LogTrimmer } from '../log/log-trimmer.ts';
import { GroupCommit } from './group-commit.ts';
import { ShardState, type StateOptions } from './state.ts';
import { StreamRegistry } from './stream-registry.ts';
import type { Write, WriteAnswer } from './write.ts';
import type { ShardWriter } from './write-queue.ts';

export interface OwnerConfig extends StateOptions {
  streamsPerDeviceMax: number;
  commitDelayMilliseconds: number;
  /** Interval between checks for due mail and secrets. */
  sweepMilliseconds?: number;
  /** While it holds, delayed mail stays delayed. Absent: nothing does. */
  hold?: Hold;
}

export interface OwnerOptions {
  environment: Environment;
  versions: DeviceVersions;
  /** Writes that wait, shared with those who send them. */
  depth: Int32Array<SharedArrayBuffer>;
  config: OwnerConfig;
  retention: RetentionSource;
  metrics: OwnerMetrics;
  log: Log;
  /** Collects, by `write`, what other threads have queued for this shard. */
  collect(): void;
}

export type OwnerMetrics = CommitMetrics & LetterMetrics & { deviceConnected?(change: 1 | -1): void };

export const defaultSweepMilliseconds = 1_000;
/** Due mail is handled every sweep, about a second; all else every minute. */
const sweepsPerFullSweep = 60;
/** Pause between rounds of a sweep, so that a backlog never monopolizes the shard's thread. */
const roundPauseMs = 3;
/** Pause after a step that found nothing to trim, so that a long log is not read all at once. */
const scanPauseMs = 10;

/** The owner of one shard: its single writer, stream registry and sweeper. */
export class ShardOwner implements ShardWriter {
  readonly #environment: Environment;
  readonly #tables: Tables;
  readonly #depth: Int32Array<SharedArrayBuffer>;
  readonly #state: ShardState;
  readonly #log: Log;
  readonly #trimmer: LogTrimmer;
  readonly #metrics: OwnerMetrics;
  readonly #indexer: LogIndexer;
  readonly #commits: GroupCommit;
  readonly #streams: StreamRegistry;
  readonly #sweeper: NodeJS.Timeout;
  readonly #hold: Hold;
  #sweeps = 0;
  #unreportedDrops = 0;
  readonly #sweeping = new SingleFlight(() =>
    this.#sweep().catch((error: unknown) => this.#log.error({ err: error }, 'sweep failed; retrying')),
  );
  /** A pass over the log may take minutes, and mail must not wait for it. */
  readonly #trimming = new SingleFlight(() => this.#trim());
  readonly #indexing = new SingleFlight(() => this.#index());
  /** Until the next full sweep, so that a log that cannot be read is not tried, and logged, with each. */
  #isIndexingPaused = false;
  /** Logged once: a full log stays full. */
  #isExcessReported = false;
  #isClosing = false;

  constructor({ config, retention, ...shared }: OwnerOptions) {
    const { environment, depth, metrics, log } = shared;
    this.#environment = environment;
    this.#hold = config.hold ?? new Hold();
    this.#depth = depth;
    this.#log = log;
    this.#metrics = metrics;
    this.#streams = new StreamRegistry(config.streamsPerDeviceMax, (change) =>
      metrics.deviceConnected?.(change),
    );
    const tables = openTables(environment);
    this.#tables = tables;
    this.#state = new ShardState(tables, config);
    this.#trimmer = new LogTrimmer({
      log: tables.log,
      times: tables.times,
      source: retention,
      lifeMs: () => this.#state.clock.lifeMs(),
      logBytes: () => environment.sizeOf('log').bytes,
      onExcess: () => {
        if (!this.#isExcessReported) log.warn('log full; removing the oldest records early (logBytesMax)');
        this.#isExcessReported = true;
      },
    });
    this.#indexer = new LogIndexer({
      tables,
      sizes: () => ({
        logBytes: environment.sizeOf('log').bytes,
        indexBytes: environment.sizeOf('logIndex').bytes,
      }),
    });
    this.#commits = new GroupCommit({
      ...shared,
      state: this.#state,
      commitDelayMilliseconds: config.commitDelayMilliseconds,
      onEffects: (effects) => {
        this.#streams.deliver(effects);
        if (effects.droppedLetters > 0) this.#noteDropped(effects.droppedLetters);
      },
    });
    this.#sweeper = setInterval(() => {
      if (this.#sweeps % sweepsPerFullSweep === 0) {
        void this.#trimming.run();
        this.#isIndexingPaused = false;
      }
      void this.#sweeping.run();
      if (!this.#isIndexingPaused) void this.#indexing.run();
    }, config.sweepMilliseconds ?? defaultSweepMilliseconds);
  }

  write(write: Write, completion: Completion<WriteAnswer>): void {
    if (this.#isClosing) {
      Atomics.sub(this.#depth, 0, 1);
      completion.reject(unavailable('This shard is closed.'));
    } else this.#commits.submit(write, completion);
  }

  async subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    return this.#streams.add(device, sink);
  }

  get presence(): Presence {
    return this.#streams.connected;
  }

  /** Makes submitted writes durable, refuses new ones, and closes the environment. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#isClosing = true;
    await this.#trimming.settled();
    await this.#indexing.settled();
    await this.#commits.drain();
    await this.#environment.close();
  }

  async #sweep(): Promise<void> {
    const jumpMs = this.#state.clock.takeJumpMs();
    const full = this.#sweeps++ % sweepsPerFullSweep === 0;
    if (full) this.#reportDropped();
    // Expiry goes on: a mail that is over must not reach its device, and stays a dead letter.
    if (this.#hasDue()) await this.#sweepRounds(this.#hold.isHeld ? 'expired' : 'due');
    if (full || jumpMs !== 0) await this.#sweepRounds('old');
    if (jumpMs !== 0) {
      const jump = { jumpSeconds: jumpMs / 1_000 };
      this.#log.warn(jump, 'clock jumped; expiry of mail is unaffected');
    }
  }

  /** True if there is more due than the mails that are stuck, so that an idle shard commits nothing. */
  #hasDue(): boolean {
    const { clock, stuckMails } = this.#state;
    this.#environment.refresh();
    for (const _ of this.#tables.retiring.getKeys({ end: sequenceKey(clock.trustedMs()), limit: 1 }))
      return true;
    const end = sequenceKey(clock.lifeMs());
    const has = (table: 'expiry' | 'due'): boolean => {
      const limit = stuckMails[table] + 1;
      return [...this.#tables[table].getKeys({ end, limit })].length === limit;
    };
    return has('expiry') || (!this.#hold.isHeld && has('due'));
  }

  /** Sweeps until nothing is due, with pauses for the writes of a busy shard. */
  async #sweepRounds(what: 'due' | 'expired' | 'old'): Promise<void> {
    while (!this.#isClosing && (await this.#submit({ type: 'sweep', params: what }))) {
      await sleep(roundPauseMs);
    }
  }

  #noteDropped(count: number): void {
    this.#metrics.lettersDropped(count);
    this.#unreportedDrops += count;
  }

  #reportDropped(): void {
    if (this.#unreportedDrops === 0) return;
    const dropped = { letters: this.#unreportedDrops };
    this.#unreportedDrops = 0;
    this.#log.warn(dropped, 'oldest dead letters dropped for newer ones (deadLettersPerFleetMax)');
  }

  /** Trims step by step, with devices' writes in between. */
  async #trim(): Promise<void> {
    try {
      for (const step of this.#trimmer.steps()) {
        if (step.changes.length > 0 || step.state !== undefined) {
          await this.#submit({ type: 'trim', params: step });
        } else await sleep(scanPauseMs);
        if (this.#isClosing) return;
        this.#environment.refresh();
      }
    } catch (error) {
      this.#log.error({ err: error }, 'log trimming failed; retrying');
    }
  }

  /** Indexes step by step, with devices' writes in between. */
  async #index(): Promise<void> {
    try {
      this.#environment.refresh();
      if (!this.#environment.hasDiskToGrow() || !this.#environment.hasMapSpace()) return;
      for (const step of this.#indexer.steps()) {
        if (step.length > 0) await this.#submit({ type: 'index', params: step });
        else await sleep(roundPauseMs);
        if (this.#isClosing) return;
        this.#environment.refresh();
      }
    } catch (error) {
      this.#isIndexingPaused = true;
      this.#log.error({ err: error }, 'indexing the log failed; retrying');
    }
  }

  #submit(write: Write): Promise<WriteAnswer> {
    Atomics.add(this.#depth, 0, 1);
    return new Promise((resolve, reject) => this.#commits.submit(write, { resolve, reject }));
  }
}
