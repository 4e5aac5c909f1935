import { yieldToEventLoop } from '../../core/async.ts';
import type { Database, Row } from '../../storage/postgres/connection/database.ts';
import type { Part } from '../parts/part.ts';
import { rowsInDatabase, rowsInFolder } from './database-rows.ts';
import { RowDigest } from './row-digest.ts';

/** Digests of one kind of record on both sides. */
interface Compared {
  name: string;
  folder: RowDigest;
  databases: RowDigest;
}

/** Compares a data folder with its databases: count and digest per kind of record. */
export class Comparison {
  readonly #kinds = new Map<string, Compared>();

  /** Digests a part on both sides. */
  async add(part: Part, database: Database, onRows: (count: number) => void): Promise<void> {
    const [folder, databases] = [new RowDigest(), new RowDigest()];
    const note = (digest: RowDigest, rows: readonly Row[]): void => {
      for (const row of rows) digest.add(part, row);
      onRows(rows.length);
    };
    const readDatabase = async (): Promise<void> => {
      for await (const rows of rowsInDatabase(database, part)) note(databases, rows);
    };
    const reading = readDatabase();
    // Awaited below, unless the folder fails first.
    reading.catch(() => {});
    for (const { rows } of rowsInFolder(part)) {
      note(folder, rows);
      // Lets the database proceed.
      await yieldToEventLoop();
    }
    await reading;
    this.addCounted(part.name, folder, databases);
  }

  addCounted(name: string, folder: RowDigest, databases: RowDigest): void {
    const kind = this.#kinds.get(name) ?? { name, folder: new RowDigest(), databases: new RowDigest() };
    kind.folder.addAll(folder);
    kind.databases.addAll(databases);
    this.#kinds.set(name, kind);
  }

  /** All kinds, in the order of their first addition. */
  get kinds(): Compared[] {
    return [...this.#kinds.values()];
  }

  get different(): Compared[] {
    return this.kinds.filter(({ folder, databases }) => !folder.isSame(databases));
  }
}
