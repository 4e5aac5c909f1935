import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/log.ts';
import type { CommitMetrics } from '../core/metrics.ts';
import type { Environment } from '../store/environment.ts';
import type { Presence } from './device-query.ts';
import { GroupCommit } from './group-commit.ts';
import type { OwnerLink } from './lmdb-shard.ts';
import type { ShardReader } from './reader.ts';
import type { StreamSink } from './shard.ts';
import { ShardState, type StateOptions } from './state.ts';
import { StreamRegistry } from './streams.ts';
import { openTables } from './tables.ts';
import type { DeviceVersions } from './versions.ts';
import { type Answer, type Completion, type SweepOutcome, sweepRecordsMax, type Write } from './write.ts';

export interface OwnerOptions extends StateOptions {
  streamsPerDeviceMax: number;
  gatherMilliseconds: number;
}

const sweepIntervalMs = 1_000;
/** Expired mail is looked for every second; keys and the log, which are in no hurry, every minute. */
const sweepsPerFullSweep = 60;

/** The owning side of one shard: its one writer, its stream registry, its sweeper. */
export class ShardOwner implements OwnerLink {
  readonly #environment: Environment;
  readonly #reader: ShardReader;
  readonly #depth: Int32Array<SharedArrayBuffer>;
  readonly #state: ShardState;
  readonly #log: Log;
  readonly #commits: GroupCommit;
  readonly #streams: StreamRegistry;
  readonly #sweeper: NodeJS.Timeout;
  #sweeps = 0;
  #isSweeping = false;

  constructor(
    environment: Environment,
    reader: ShardReader,
    versions: DeviceVersions,
    depth: Int32Array<SharedArrayBuffer>,
    options: OwnerOptions,
    metrics: CommitMetrics & { deviceConnected?(change: 1 | -1): void },
    log: Log,
    /** Brings in, by `write`, what other threads have left for this shard. */
    collect: () => void,
  ) {
    this.#environment = environment;
    this.#depth = depth;
    this.#reader = reader;
    this.#log = log;
    this.#streams = new StreamRegistry(options.streamsPerDeviceMax, (change) =>
      metrics.deviceConnected?.(change),
    );
    this.#state = new ShardState(openTables(environment), options);
    this.#commits = new GroupCommit({
      environment,
      state: this.#state,
      versions,
      depth,
      metrics,
      log,
      gatherMilliseconds: options.gatherMilliseconds,
      collect,
      onEffects: (effects) => this.#streams.deliver(effects),
    });
    this.#sweeper = setInterval(() => {
      if (this.#isSweeping) return;
      this.#isSweeping = true;
      this.#sweep()
        .catch((error: unknown) => log.error({ err: error }, 'the sweeper will try again'))
        .finally(() => {
          this.#isSweeping = false;
        });
    }, sweepIntervalMs);
  }

  write(write: Write, completion: Completion<Answer>): void {
    this.#commits.submit(write, completion);
  }

  async subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    return this.#streams.add(device, sink);
  }

  get presence(): Presence {
    return this.#streams.connected;
  }

  /** Finishes what was submitted, on disk, and closes the environment. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#commits.drain();
    await this.#environment.close();
  }

  /** Round after round until nothing is over any more: what a busy shard takes in meanwhile comes in between. */
  async #sweep(): Promise<void> {
    const { clock } = this.#state;
    const jumpMs = clock.takeJumpMs();
    const full = this.#sweeps++ % sweepsPerFullSweep === 0;
    if (
      !full &&
      jumpMs === 0 &&
      !this.#reader.hasDue(clock.lifeMs(), this.#state.unexpirableMails, clock.trustedMs())
    )
      return;
    let removed: SweepOutcome;
    do removed = await this.#sweepOnce();
    while (Object.values(removed).includes(sweepRecordsMax));
    if (jumpMs !== 0) {
      const jump = { jumpSeconds: jumpMs / 1_000 };
      this.#log.warn(jump, 'the clock of this machine has jumped; mail expires as if it had not');
    }
  }

  #sweepOnce(): Promise<SweepOutcome> {
    Atomics.add(this.#depth, 0, 1);
    return new Promise((resolve, reject) => {
      const completion = { resolve: resolve as (answer: Answer) => void, reject };
      this.write({ type: 'sweep', given: undefined }, completion);
    });
  }
}
