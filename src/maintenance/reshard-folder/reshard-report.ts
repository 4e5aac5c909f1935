import { statfsSync } from 'node:fs';
import { SingleBar } from 'cli-progress';
import { OperatorError } from '../../core/errors.ts';
import type { DevicesSize } from '../../storage/lmdb/reshard/move-devices.ts';

/** Sizes of one shard of the old layout. */
export interface ShardSize {
  devices: DevicesSize;
  log: DevicesSize;
  logEnd: number;
}

/** Growth: pages filled from several sources are less dense than their sources. */
const growth = 1.3;
/** A transaction writes new pages before it frees the old ones; this is more than one ever writes. */
const transactionBytesMax = 64 * 1024 * 1024;

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2).toLocaleString('en-GB')} MiB`;

/**
 * Refuses resharding for which the disk or a shard is too small: before it begins, or it would have to be undone.
 * @throws OperatorError naming what is missing
 */
export function checkRoom(
  path: string,
  sizes: readonly ShardSize[],
  shards: number,
  mapBytesMax: number,
): void {
  const copied = bytesToCopy(sizes, shards);
  const beside = sizes.map(({ devices }) => Math.min(devices.bytes, transactionBytesMax));
  const needed = copied + beside.reduce((sum, bytes) => sum + bytes, 0);
  const { bavail, bsize } = statfsSync(path);
  if (needed > bavail * bsize) {
    throw new OperatorError(
      `Resharding ${path} from ${sizes.length} to ${shards} shards needs ${mebibytes(needed)} of free disk, but only ${mebibytes(bavail * bsize)} are available. Free some space, or start with shards ${sizes.length}.`,
    );
  }
  const largest = Math.max(...sizes.slice(0, shards).map(({ devices, log }) => devices.bytes + log.bytes));
  if (shards < sizes.length && largest + copied / shards > mapBytesMax) {
    throw new OperatorError(
      `With ${shards} shards, a shard of ${path} would hold ${mebibytes(largest + copied / shards)}, more than mapBytesMax. Raise that, or start with shards ${sizes.length}.`,
    );
  }
}

/** When growing, every old shard gives the same share; a removed shard is copied whole. */
function bytesToCopy(sizes: readonly ShardSize[], shards: number): number {
  const share = Math.max(0, (shards - sizes.length) / shards);
  let bytes = 0;
  for (const [shard, { devices, log }] of sizes.entries()) {
    bytes += shard < shards ? devices.bytes * share : devices.bytes + log.bytes;
  }
  return bytes * growth;
}

const lineIntervalMs = 5_000;

/**
 * Reports progress and remaining time on stderr: a bar on a terminal, else a line now and then. Counts records, which
 * all take about as long.
 */
export class ReshardReport {
  readonly #title: string;
  readonly #total: number;
  readonly #bar: SingleBar | undefined;
  readonly #startMs = performance.now();
  #lineMs = this.#startMs;
  /** Records of finished phases. */
  #passed = 0;

  constructor(title: string, records: number) {
    this.#title = title;
    this.#total = Math.max(records, 1);
    if (!process.stderr.isTTY) return;
    this.#bar = new SingleBar({
      format: `${title} {bar} {percentage} %, {eta_formatted} left`,
      stream: process.stderr,
      // Uses the rate of the last seconds: copying and removing differ.
      etaBuffer: 50,
    });
    this.#bar.start(this.#total, 0);
  }

  get seconds(): string {
    return ((performance.now() - this.#startMs) / 1_000).toFixed(1);
  }

  /** Shows the progress of the present phase. */
  show(records: number): void {
    const passed = Math.min(this.#passed + records, this.#total);
    if (this.#bar !== undefined) {
      this.#bar.update(Math.round(passed));
      return;
    }
    const nowMs = performance.now();
    if (nowMs - this.#lineMs < lineIntervalMs || passed === 0) return;
    this.#lineMs = nowMs;
    const left = ((nowMs - this.#startMs) / passed) * (this.#total - passed);
    const percent = Math.floor((100 * passed) / this.#total);
    console.error(`${this.#title}: ${percent} %, about ${Math.ceil(left / 1_000)} s left.`);
  }

  /** Ends a phase. */
  add(records: number): void {
    this.#passed += records;
    this.show(0);
  }

  /** Stops the bar, complete or not. */
  end(): void {
    this.#bar?.stop();
  }
}
