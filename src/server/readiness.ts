import type { NotReady } from '../core/telemetry/readiness.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';

const sampleMs = 1_000;
/** Number of samples after which a full queue is not a burst any more. */
const fullQueueSamples = 10;
/** Number of samples after which a refusal is forgotten: without requests, a shard cannot show that it has room. */
const refusalSamples = 60;

export type Phase = NotReady & { reason: 'starting' | 'upgrading' | 'moving' | 'stopping' };

export const starting: Phase = { reason: 'starting', msg: 'The server is starting.' };
export const stopping: Phase = { reason: 'stopping', msg: 'The server is stopping.' };

interface Sampled {
  refusedWrites: number;
  /** Samples since the last refused write. */
  sinceRefusal: number;
  /** Consecutive samples with a full queue. */
  fullQueue: number;
}

/** Tells a load balancer whether to route devices here, and if not, why. */
export class Readiness {
  /** Phase of the whole server; undefined while it serves. */
  phase: Phase | undefined = starting;
  #workers: WorkerPool | undefined;
  #sampled: readonly Sampled[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Includes the state of the shards from now on. */
  watch(workers: WorkerPool): void {
    this.#workers = workers;
    this.#sampled = workers.metrics.map(({ refusedWrites }) => ({
      refusedWrites,
      sinceRefusal: refusalSamples,
      fullQueue: 0,
    }));
    this.#timer = setInterval(() => this.#sample(workers), sampleMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#workers = undefined;
  }

  reasons(): NotReady[] {
    const reasons: NotReady[] = this.phase === undefined ? [] : [this.phase];
    const workers = this.#workers;
    if (workers === undefined) return reasons;
    reasons.push(...workers.shards.problems());
    for (const [shard, sampled] of this.#sampled.entries()) {
      const refusal = workers.metrics[shard]?.refusal;
      const { refusedWrites = 0 } = workers.metrics[shard] ?? {};
      const isRecent = sampled.sinceRefusal < refusalSamples || refusedWrites !== sampled.refusedWrites;
      if (refusal === 'map' && isRecent) {
        reasons.push({ reason: 'shard_full', msg: `Shard ${shard} has reached mapBytesMax.` });
      }
      if (refusal === 'store' && isRecent) {
        reasons.push({ reason: 'store_refuses', msg: `The store of shard ${shard} refuses commits.` });
      }
      if (sampled.fullQueue >= fullQueueSamples) {
        const msg = `The write queue of shard ${shard} has been full for ${sampled.fullQueue} s.`;
        reasons.push({ reason: 'queue_full', msg });
      }
    }
    return reasons;
  }

  #sample({ metrics, shards }: WorkerPool): void {
    for (const [shard, sampled] of this.#sampled.entries()) {
      const { refusedWrites = 0 } = metrics[shard] ?? {};
      sampled.sinceRefusal = refusedWrites === sampled.refusedWrites ? sampled.sinceRefusal + 1 : 0;
      sampled.refusedWrites = refusedWrites;
      // A node may have more threads than its store has databases.
      const accepts = shards.all[shard]?.accepts() ?? true;
      sampled.fullQueue = accepts ? 0 : sampled.fullQueue + 1;
    }
  }
}
