import { SingleFlight, sleep } from '../../../core/async.ts';
import { unavailable } from '../../../core/errors.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { CommitMetrics, LetterMetrics } from '../../../core/telemetry/worker-metrics.ts';
import type { Presence } from '../../../domain/devices/device-query.ts';
import type { RetentionSource } from '../../../domain/log-retention.ts';
import type { StreamSink } from '../../../domain/shard.ts';
import type { Completion } from '../../../domain/write.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import type { Environment } from '../environment/environment.ts';
import { openTables } from '../layout/tables.ts';
import { LogTrimmer } from '../log/log-trimmer.ts';
import { GroupCommit } from './group-commit.ts';
import type { ShardWriter } from './lmdb-shard.ts';
import type { ShardReader } from './reader.ts';
import { ShardState, type StateOptions } from './state.ts';
import { StreamRegistry } from './streams.ts';
import type { Write, WriteAnswer } from './write.ts';

export interface OwnerOptions extends StateOptions {
  streamsPerDeviceMax: number;
  commitDelayMilliseconds: number;
  /** Between two looks for what is due. */
  sweepMilliseconds?: number;
}

export type OwnerMetrics = CommitMetrics & LetterMetrics & { deviceConnected?(change: 1 | -1): void };

const defaultSweepMilliseconds = 1_000;
/** Mail whose time it is, to expire or to be delivered, is looked for every second; all else every minute. */
const sweepsPerFullSweep = 60;
/** Between two rounds of one sweep, so that a backlog never has the thread of a shard for itself. */
const roundPauseMs = 3;
/** Between two looks into the log that found nothing to do, so that a long log is not read all at once. */
const lookPauseMs = 10;

/** The owning side of one shard: its one writer, its stream registry, its sweeper. */
export class ShardOwner implements ShardWriter {
  readonly #environment: Environment;
  readonly #reader: ShardReader;
  readonly #depth: Int32Array<SharedArrayBuffer>;
  readonly #state: ShardState;
  readonly #log: Log;
  readonly #trimmer: LogTrimmer;
  readonly #metrics: OwnerMetrics;
  readonly #commits: GroupCommit;
  readonly #streams: StreamRegistry;
  readonly #sweeper: NodeJS.Timeout;
  #sweeps = 0;
  #untoldDrops = 0;
  readonly #sweeping = new SingleFlight(() =>
    this.#sweep().catch((error: unknown) => this.#log.error({ err: error }, 'the sweeper will try again')),
  );
  /** A pass over the log that is under way: it may take minutes, and mail does not wait for it. */
  readonly #trimming = new SingleFlight(() => this.#trim());
  /** Once is enough: a log that is full stays so. */
  #isExcessTold = false;
  #isClosing = false;

  constructor(
    environment: Environment,
    reader: ShardReader,
    versions: DeviceVersions,
    depth: Int32Array<SharedArrayBuffer>,
    options: OwnerOptions,
    retention: RetentionSource,
    metrics: OwnerMetrics,
    log: Log,
    /** Brings in, by `write`, what other threads have left for this shard. */
    collect: () => void,
  ) {
    this.#environment = environment;
    this.#depth = depth;
    this.#reader = reader;
    this.#log = log;
    this.#metrics = metrics;
    this.#streams = new StreamRegistry(options.streamsPerDeviceMax, (change) =>
      metrics.deviceConnected?.(change),
    );
    const tables = openTables(environment);
    this.#state = new ShardState(tables, options);
    this.#trimmer = new LogTrimmer({
      log: tables.log,
      times: tables.times,
      source: retention,
      lifeMs: () => this.#state.clock.lifeMs(),
      logBytes: () => environment.sizeOf('log').bytes,
      onExcess: () => {
        if (!this.#isExcessTold) log.warn('the oldest records go before their time (logBytesMax)');
        this.#isExcessTold = true;
      },
    });
    this.#commits = new GroupCommit({
      environment,
      state: this.#state,
      versions,
      depth,
      metrics,
      log,
      commitDelayMilliseconds: options.commitDelayMilliseconds,
      collect,
      onEffects: (effects) => {
        this.#streams.deliver(effects);
        if (effects.droppedLetters > 0) this.#noteDropped(effects.droppedLetters);
      },
    });
    this.#sweeper = setInterval(() => {
      if (this.#sweeps % sweepsPerFullSweep === 0) void this.#trimming.run();
      void this.#sweeping.run();
    }, options.sweepMilliseconds ?? defaultSweepMilliseconds);
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

  /** Finishes what was submitted, on disk, refuses what comes now, and closes the environment. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#isClosing = true;
    await this.#trimming.settled();
    await this.#commits.drain();
    await this.#environment.close();
  }

  async #sweep(): Promise<void> {
    const { clock } = this.#state;
    const jumpMs = clock.takeJumpMs();
    const full = this.#sweeps++ % sweepsPerFullSweep === 0;
    if (full) this.#tellDropped();
    if (this.#reader.hasDue(clock.lifeMs(), this.#state.stuckMails, clock.trustedMs())) {
      await this.#sweepRounds('due');
    }
    if (full || jumpMs !== 0) await this.#sweepRounds('old');
    if (jumpMs !== 0) {
      const jump = { jumpSeconds: jumpMs / 1_000 };
      this.#log.warn(jump, 'the clock of this machine has jumped; mail expires as if it had not');
    }
  }

  /** Until nothing is over any more: what a busy shard takes in meanwhile comes in between. */
  async #sweepRounds(what: 'due' | 'old'): Promise<void> {
    while (!this.#isClosing && (await this.#ask({ type: 'sweep', given: what }))) {
      await sleep(roundPauseMs);
    }
  }

  #noteDropped(count: number): void {
    this.#metrics.lettersDropped(count);
    this.#untoldDrops += count;
  }

  #tellDropped(): void {
    if (this.#untoldDrops === 0) return;
    const dropped = { letters: this.#untoldDrops };
    this.#untoldDrops = 0;
    this.#log.warn(
      dropped,
      'the oldest dead letters of a fleet went for newer ones (deadLettersPerFleetMax)',
    );
  }

  /** A step at a time, and what devices write in between. */
  async #trim(): Promise<void> {
    try {
      for (const step of this.#trimmer.steps()) {
        if (step.changes.length > 0 || step.state !== undefined) {
          await this.#ask({ type: 'trim', given: step });
        } else await sleep(lookPauseMs);
        if (this.#isClosing) return;
        this.#environment.refresh();
      }
    } catch (error) {
      this.#log.error({ err: error }, 'the log is not trimmed; it will be tried again');
    }
  }

  #ask(write: Write): Promise<WriteAnswer> {
    Atomics.add(this.#depth, 0, 1);
    return new Promise((resolve, reject) => this.#commits.submit(write, { resolve, reject }));
  }
}
