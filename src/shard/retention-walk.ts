import type { Table } from '../store/environment.ts';

/**
 * Removes what is over from a table whose order is not that of its end: walks through it, some records at a time, from
 * the front to the end and then again from the front. Where it is, is kept in memory: a restart begins anew.
 */
export class RetentionWalk {
  readonly #table: Table;
  #last: Buffer | undefined;

  constructor(table: Table) {
    this.#table = table;
  }

  /**
   * Looks at `limit` records at most, none of them from `end` on. Answers how many it removed, and `limit` where it is
   * worth going on at once: most of what it looked at was over.
   */
  step(
    limit: number,
    end: Buffer | undefined,
    isOver: (key: Buffer, value: Buffer) => boolean,
    onRemove: (key: Buffer) => void = () => {},
  ): number {
    const from = this.#last === undefined ? {} : { start: this.#last, exclusiveStart: true };
    const over: Buffer[] = [];
    let looked = 0;
    for (const { key, value } of this.#table.getRange({ ...from, ...(end && { end }), limit })) {
      looked += 1;
      this.#last = key;
      if (isOver(key, value)) over.push(key);
    }
    if (looked < limit) this.#last = undefined;
    for (const key of over) {
      this.#table.removeSync(key);
      onRemove(key);
    }
    return looked === limit && 2 * over.length >= limit ? limit : Math.min(over.length, limit - 1);
  }
}
