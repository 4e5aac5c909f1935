import { hash } from 'node:crypto';
import { pack } from '../../storage/lmdb/environment/codec.ts';
import type { Row } from '../../storage/postgres/connection/database.ts';
import type { Part } from '../parts/part.ts';

const lanes = 8;

/** How many rows there are and a digest of all, whatever their order: the sum of the digests of each. */
export class RowDigest {
  count = 0;
  readonly #sums = new Uint32Array(lanes);

  add({ compared, table }: Pick<Part, 'table' | 'compared'>, row: Row): void {
    this.addValue(compared?.(row) ?? table.columnNames.map((column) => row[column]));
  }

  addValue(value: unknown): void {
    const digest = hash('sha256', pack(value), 'buffer');
    // A typed array keeps the low 32 bits of a sum.
    for (let lane = 0; lane < lanes; lane += 1) {
      this.#sums[lane] = (this.#sums[lane] ?? 0) + digest.readUInt32BE(4 * lane);
    }
    this.count += 1;
  }

  /** The same as if all rows had been added here. */
  addAll(other: RowDigest): void {
    this.count += other.count;
    for (let lane = 0; lane < lanes; lane += 1) {
      this.#sums[lane] = (this.#sums[lane] ?? 0) + (other.#sums[lane] ?? 0);
    }
  }

  isSame(other: RowDigest): boolean {
    return this.count === other.count && this.digest === other.digest;
  }

  get digest(): string {
    return [...this.#sums].map((sum) => sum.toString(16).padStart(8, '0')).join('');
  }
}
