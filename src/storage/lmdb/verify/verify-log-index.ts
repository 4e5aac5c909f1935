import type { StoredTable } from '../environment/database-file.ts';
import { entriesIn } from '../log/log-batch.ts';
import {
  deviceHashAt,
  groupPositions,
  hasEntry,
  indexFault,
  segmentKey,
  segmentPositions,
  sliceKey,
  sliceOf,
  slicesPerGroup,
} from '../log/log-index.ts';
import type { TableWalk } from './walk.ts';

/** Checks the index of the log by device against the log. Where the index lacks a stretch, nothing is wrong. */
export class LogIndexCheck {
  readonly #index: StoredTable | undefined;
  /** Values of the group that was looked at last, by their keys. */
  #group = -1;
  readonly #values = new Map<string, Buffer | undefined>();

  constructor(tables: ReadonlyMap<string, StoredTable>) {
    // The folder of an older version has none.
    this.#index = tables.get('logIndex');
  }

  walk(walk: TableWalk): void {
    if (this.#index !== undefined) walk('logIndex', indexFault);
  }

  /** True if all records of a batch, which must be sound, are where readers look for them. */
  covers(first: number, batch: Buffer): boolean {
    for (const { index, at } of entriesIn(batch)) {
      if (!this.#has(first + index, deviceHashAt(batch, at))) return false;
    }
    return true;
  }

  #has(position: number, hash: number): boolean {
    const group = Math.floor(position / groupPositions);
    const offset = position % groupPositions;
    const isWhole = this.#valueOf(group, sliceKey(group, slicesPerGroup - 1)) !== undefined;
    const key = isWhole
      ? sliceKey(group, sliceOf(hash))
      : segmentKey(group, Math.floor(offset / segmentPositions));
    const value = this.#valueOf(group, key);
    return value === undefined ? !isWhole : hasEntry(value, hash, offset);
  }

  #valueOf(group: number, key: Buffer): Buffer | undefined {
    if (group !== this.#group) this.#values.clear();
    this.#group = group;
    const name = key.toString('latin1');
    if (!this.#values.has(name)) {
      const value = this.#index?.get(key);
      this.#values.set(name, value && Buffer.from(value));
    }
    return this.#values.get(name);
  }
}
