/**
 * Counters in shared memory, written by worker threads and read by the main thread: counting costs an array access,
 * and a scrape does not disturb workers. Each worker is the only writer of its own block.
 */
const statuses = [200, 201, 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503];
/** Upper bounds of the latency histogram, in seconds; one more cell counts what exceeds them. */
export const latencyBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
] as const;
/** Upper bounds of the batch-size histogram, in writes. */
export const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096] as const;

const commitCells = 8;
/** Cells per route; the last is for unlisted statuses. */
const statusCells = statuses.length + 1;

/** Why a shard refuses writes: disk full, its map full, or the store does not accept them. */
const refusals = ['none', 'disk', 'map', 'store'] as const;
export type CommitRefusal = (typeof refusals)[number];

/** Metrics of group commit. */
export interface CommitMetrics {
  committed(writes: number): void;
  failed(): void;
  refused(writes: number, refusal: CommitRefusal): void;
  /** Writes like those refused last are accepted again. */
  recovered(): void;
}

/** Metrics of dead letters. */
export interface LetterMetrics {
  lettersDropped(count: number): void;
}

/** One worker's block. Both sides must use the same routes, which determine the layout. */
export class WorkerMetrics implements CommitMetrics, LetterMetrics {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #routes: readonly string[];
  readonly #latencyAt: number;
  readonly #batchAt: number;

  constructor(routes: readonly string[], buffer: SharedArrayBuffer) {
    this.#cells = new Float64Array(buffer);
    this.#routes = routes;
    this.#latencyAt = commitCells + routes.length * statusCells;
    this.#batchAt = this.#latencyAt + latencyBounds.length + 2;
  }

  static allocate(routes: readonly string[]): SharedArrayBuffer {
    const cells =
      commitCells + routes.length * statusCells + latencyBounds.length + 2 + batchBounds.length + 2;
    return new SharedArrayBuffer(cells * Float64Array.BYTES_PER_ELEMENT);
  }

  answered(routeIndex: number, status: number, seconds: number): void {
    const known = statuses.indexOf(status);
    const cell = known < 0 ? statuses.length : known;
    this.#add(commitCells + routeIndex * statusCells + cell, 1);
    this.#observe(this.#latencyAt, latencyBounds, seconds);
  }

  streamOpened(): void {
    this.#add(0, 1);
  }

  streamClosed(): void {
    this.#add(0, -1);
  }

  committed(writes: number): void {
    this.#add(1, 1);
    this.#add(2, writes);
    this.#observe(this.#batchAt, batchBounds, writes);
  }

  failed(): void {
    this.#add(3, 1);
  }

  refused(writes: number, refusal: CommitRefusal): void {
    this.#add(4, writes);
    this.#cells[5] = refusals.indexOf(refusal);
  }

  recovered(): void {
    this.#cells[5] = 0;
  }

  deviceConnected(change: 1 | -1): void {
    this.#add(6, change);
  }

  /** Devices of the shard with open event streams. */
  get connectedDevices(): number {
    return this.#read(6);
  }

  lettersDropped(count: number): void {
    this.#add(7, count);
  }

  get openStreams(): number {
    return this.#read(0);
  }

  get commits(): number {
    return this.#read(1);
  }

  get committedWrites(): number {
    return this.#read(2);
  }

  get failedCommits(): number {
    return this.#read(3);
  }

  get refusedWrites(): number {
    return this.#read(4);
  }

  /** Why the last write was refused, until one is accepted again. */
  get refusal(): CommitRefusal {
    return refusals[this.#read(5)] ?? 'none';
  }

  get droppedLetters(): number {
    return this.#read(7);
  }

  /** Yields all request counts that are not zero. */
  *requests(): Generator<{ route: string; status: number | 'other'; count: number }> {
    for (const [routeIndex, route] of this.#routes.entries()) {
      for (let cell = 0; cell < statusCells; cell += 1) {
        const count = this.#read(commitCells + routeIndex * statusCells + cell);
        if (count > 0) yield { route, status: statuses[cell] ?? 'other', count };
      }
    }
  }

  /** Counts per bucket, not cumulative, the last one beyond all bounds; and the sum of all values. */
  latency(): { counts: number[]; sum: number } {
    return this.#histogram(this.#latencyAt, latencyBounds.length);
  }

  batchSizes(): { counts: number[]; sum: number } {
    return this.#histogram(this.#batchAt, batchBounds.length);
  }

  #histogram(at: number, bounds: number): { counts: number[]; sum: number } {
    return { counts: [...this.#cells.subarray(at, at + bounds + 1)], sum: this.#read(at + bounds + 1) };
  }

  #observe(at: number, bounds: readonly number[], value: number): void {
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#add(at + bucket, 1);
    this.#add(at + bounds.length + 1, value);
  }

  #add(index: number, value: number): void {
    this.#cells[index] = this.#read(index) + value;
  }

  #read(index: number): number {
    return this.#cells[index] ?? 0;
  }
}
