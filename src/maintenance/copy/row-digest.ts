import { hash } from 'node:crypto';
import type { Row } from '../../storage/postgres/connection/database.ts';
import { pack } from '../../storage/tables/codec.ts';
import type { Part } from '../parts/part.ts';

const sums = 8;

/** Count and order-independent digest of rows: the sum of the digests of each. */
export class RowDigest {
  count = 0;
  readonly #sums = new Uint32Array(sums);

  add({ compared, table }: Pick<Part, 'table' | 'compared'>, row: Row): void {
    this.addValue(compared?.(row) ?? table.columnNames.map((column) => row[column]));
  }

  addValue(value: unknown): void {
    const digest = hash('sha256', pack(value), 'buffer');
    // A typed array keeps the low 32 bits of a sum.
    for (let index = 0; index < sums; index += 1) {
      this.#sums[index] = (this.#sums[index] ?? 0) + digest.readUInt32BE(4 * index);
    }
    this.count += 1;
  }

  /** As if all rows of `other` had been added here. */
  addAll(other: RowDigest): void {
    this.count += other.count;
    for (let index = 0; index < sums; index += 1) {
      this.#sums[index] = (this.#sums[index] ?? 0) + (other.#sums[index] ?? 0);
    }
  }

  isSame(other: RowDigest): boolean {
    return this.count === other.count && this.digest === other.digest;
  }

  get digest(): string {
    return [...this.#sums].map((sum) => sum.toString(16).padStart(8, '0')).join('');
  }
}
