import { Hold } from '../domain/hold.ts';
import { packed } from '../storage/tables/codec.ts';
import { Collection, type TableLayout } from '../storage/tables/collection.ts';
import { KeyCodec, textField } from '../storage/tables/key-codec.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { Changes } from './changes.ts';

interface HoldRow {
  sinceMs: number;
}

/** hold: one row, as long as the server is held. */
export const holdTable: TableLayout<[string], HoldRow> = {
  name: 'hold',
  key: new KeyCodec(textField(/^server$/)),
  value: packed(({ sinceMs }) => typeof sinceMs === 'number'),
};
const holdKey: [string] = ['server'];

/**
 * The hold of the server, or of all nodes on one store, on the main thread: stored among the declarations, so that it
 * outlives restarts, and is backed up and copied with them.
 */
export class DeclaredHold {
  /** For those who wait for the release. */
  readonly flag = new Hold();
  readonly #table: Collection<[string], HoldRow>;
  readonly #changes: Changes;
  #sinceMs: number | undefined;

  /** `stored` is the registry's, which closes it. */
  constructor(stored: TableStore) {
    this.#table = new Collection(stored, holdTable);
    this.#changes = new Changes(stored);
    for (const [, row] of this.#table.entries([], {}, this.#onDamage)) this.#set(row);
  }

  /** Applies changes from another node. */
  follow(changes: readonly StoredChange[]): void {
    for (const [, row] of this.#table.changed(changes, this.#onDamage)) this.#set(row);
  }

  get isHeld(): boolean {
    return this.flag.isHeld;
  }

  /** Undefined if it is not held, or if its record is damaged. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Settles once durable. @throws ApiError unavailable. */
  begin(): Promise<void> {
    return this.#changes.run(async () => {
      if (this.isHeld) return;
      const row = { sinceMs: Date.now() };
      await this.#changes.write(() => this.#table.put(holdKey, row));
      this.#set(row);
    });
  }

  /** Settles once durable; returns whether the server was held. @throws ApiError unavailable. */
  release(): Promise<boolean> {
    return this.#changes.run(async () => {
      if (!this.isHeld) return false;
      await this.#changes.write(() => void this.#table.delete(holdKey));
      this.#set(undefined);
      return true;
    });
  }

  /** Finishes changes in flight. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #set(row: HoldRow | undefined): void {
    this.#sinceMs = row?.sinceMs;
    this.flag.isHeld = row !== undefined;
  }

  /** A damaged record holds too: acting cannot be undone. */
  readonly #onDamage = (): void => {
    this.flag.isHeld = true;
  };
}
