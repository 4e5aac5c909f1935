import type { ActiveJob } from './active-job.ts';

/**
 * The broadcasts that are not over. Fleets take turns, and so do those of one fleet: a small one does not wait for a
 * large one, nor one fleet for the hundred broadcasts of another.
 */
export class Rota {
  /** Whose turn it is comes first, of fleets and of each one's broadcasts. */
  readonly #fleets = new Map<string, Map<string, ActiveJob>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(fleetId: string, key: Buffer): ActiveJob | undefined {
    return this.#fleets.get(fleetId)?.get(key.toString('hex'));
  }

  add(job: ActiveJob): void {
    const jobs = this.#fleets.get(job.fleetId) ?? new Map<string, ActiveJob>();
    this.#fleets.set(job.fleetId, jobs.set(job.key.toString('hex'), job));
    this.#size += 1;
  }

  remove({ fleetId, key }: ActiveJob): void {
    const jobs = this.#fleets.get(fleetId);
    if (jobs?.delete(key.toString('hex')) !== true) return;
    this.#size -= 1;
    if (jobs.size === 0) this.#fleets.delete(fleetId);
  }

  *all(): Generator<ActiveJob> {
    for (const jobs of this.#fleets.values()) yield* jobs.values();
  }

  /** Whose turn it is of those that can go on. */
  next(): ActiveJob | undefined {
    for (const [fleetId, jobs] of this.#fleets) {
      for (const [name, job] of jobs) {
        if (!job.isReady) continue;
        toEnd(jobs, name, job);
        toEnd(this.#fleets, fleetId, jobs);
        return job;
      }
    }
    return undefined;
  }
}

function toEnd<T>(inTurn: Map<string, T>, name: string, one: T): void {
  inTurn.delete(name);
  inTurn.set(name, one);
}
