import { randomUUID } from 'node:crypto';
import { OperatorError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { checkTables, migrate } from '../../storage/postgres/schema/migrate.ts';
import {
  isSameShardIdentity,
  readShardIdentity,
  type ShardIdentity,
} from '../../storage/postgres/schema/shard-identity.ts';
import { openDatabase, refuseServed } from '../copy/copied-database.ts';
import type { CopyProgress } from '../copy/copy.ts';
import { RowDigest } from '../copy/row-digest.ts';
import {
  copyMisplaced,
  countRows,
  digestRows,
  isNewHere,
  type Placement,
  removeMisplaced,
  type ShardOf,
} from './misplaced-rows.ts';
import { checkAdded, checkKnown, checkLists, makeKeyRoom, refuseRecords } from './reshard-checks.ts';
import {
  dropLogCursors,
  type LogCursors,
  type Mark,
  otherChange,
  ReshardedDatabase,
} from './resharded-database.ts';

export interface ReshardDatabasesOptions {
  /** URLs of the databases in the order of `store.shards`, before and after. */
  from: readonly string[];
  to: readonly string[];
  shardOf: ShardOf;
  logCursors: readonly LogCursors[];
  /** A database may be removed although its log has records. */
  leaveLog: boolean;
  progress: CopyProgress;
  log: Log;
}

/** The rows that have moved: count and digest per kind. */
export type ReshardedRows = ReadonlyMap<string, RowDigest>;

/** Keys are read to copy, to compare, on either side, and to remove. */
const walks = 3;

/**
 * Moves the devices whose database changes with the number of databases, with everything but their records. Safe to
 * interrupt: the same call again continues, and until then no server accepts the databases. Nothing is removed before
 * everything was copied and both sides were compared. Returns undefined if it was complete already.
 * @throws OperatorError, ApiError unavailable
 */
export async function reshardDatabases(options: ReshardDatabasesOptions): Promise<ReshardedRows | undefined> {
  const change = await Change.open(options);
  try {
    if (await change.isDone()) return undefined;
    await change.begin();
    const moved = await change.copy();
    await change.remove();
    return moved;
  } finally {
    await change.close();
  }
}

/** Undoes a change that has removed nothing yet. @throws OperatorError, ApiError unavailable */
export async function abortReshard(options: ReshardDatabasesOptions): Promise<void> {
  const change = await Change.open(options);
  try {
    await change.abort();
  } finally {
    await change.close();
  }
}

interface Member {
  index: number;
  database: ReshardedDatabase;
}

class Change {
  readonly #options: ReshardDatabasesOptions;
  readonly #from: number;
  readonly #to: number;
  /** All databases before and after, in order. */
  readonly #all: readonly ReshardedDatabase[];

  private constructor(options: ReshardDatabasesOptions, all: readonly ReshardedDatabase[]) {
    this.#options = options;
    this.#from = options.from.length;
    this.#to = options.to.length;
    this.#all = all;
  }

  /** @throws OperatorError */
  static async open(options: ReshardDatabasesOptions): Promise<Change> {
    const { from, to, log } = options;
    checkLists(from, to);
    const urls = from.length > to.length ? from : to;
    const databases = urls.map((url) => openDatabase(url, log));
    try {
      const all: ReshardedDatabase[] = [];
      for (const [index, database] of databases.entries()) {
        if (index < from.length) await checkTables(database);
        else await migrate(database);
        all.push(await ReshardedDatabase.open(database));
      }
      return new Change(options, all);
    } catch (error) {
      for (const database of databases) await database.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const { database } of this.#all) await database.close();
  }

  /** True if the change is complete already. */
  async isDone(): Promise<boolean> {
    if (this.#first.mark !== undefined) return false;
    for (const [index, { database, mark }] of this.#all.entries()) {
      const identity = await readShardIdentity(database);
      if (
        mark !== undefined ||
        identity === undefined ||
        !isSameShardIdentity(identity, this.#identityAfter(index))
      )
        return false;
    }
    return true;
  }

  /**
   * Marks the databases, which nobody serves from here on. The first one is marked first, and its mark decides.
   * @throws OperatorError
   */
  async begin(): Promise<void> {
    const mark = this.#mark;
    if (mark !== undefined && (mark.from !== this.#from || mark.to !== this.#to)) throw otherChange();
    for (const { database } of this.#all) await refuseServed(database);
    if (mark?.phase !== 'removing') {
      for (const [index, database] of this.#all.entries()) await this.#checkWhole(index, database);
    }
    const { id, phase } = mark ?? { id: randomUUID(), phase: 'copying' as const };
    for (const [index, database] of this.#all.entries()) {
      await database.putMark({ id, from: this.#from, to: this.#to, index, phase });
    }
    // A server started meanwhile did not see the mark.
    for (const { database } of this.#all) await refuseServed(database);
  }

  /**
   * Copies and compares. Returns what has moved; empty if an earlier call got further, since its comparison is not
   * stored.
   */
  async copy(): Promise<ReshardedRows> {
    const { progress } = this.#options;
    if (this.#mark?.phase === 'removing') return new Map();
    let rows = 0;
    for (const { database } of this.#all) rows += await countRows(database);
    progress.start(walks * rows);
    for (const { database: source } of this.#sources) {
      for (const { database: target } of this.#targets) await makeKeyRoom(source.database, target.database);
    }
    await Promise.all(this.#sources.map((source) => this.#copyFrom(source)));
    return this.#compare();
  }

  async remove(): Promise<void> {
    const mark = this.#mark;
    if (mark === undefined) throw new Error('a change that has begun is marked');
    await this.#first.putMark({ ...mark, phase: 'removing' });
    const { shardOf, progress } = this.#options;
    await Promise.all(
      this.#sources.map(({ index, database }) =>
        removeMisplaced(
          database.database,
          (device) => shardOf(device, this.#to) !== index,
          (keys) => progress.add(keys),
        ),
      ),
    );
    const sharedCount = Math.min(this.#from, this.#to);
    for (const cursors of this.#options.logCursors) {
      await dropLogCursors(this.#first.database, cursors, sharedCount);
    }
    for (const [index, database] of this.#all.entries()) await database.settle(this.#identityAfter(index));
    await this.#end();
  }

  async abort(): Promise<void> {
    const mark = this.#mark;
    if (mark === undefined)
      throw new OperatorError('These databases are not being resharded. There is nothing to give up.');
    if (mark.from !== this.#from || mark.to !== this.#to) throw otherChange();
    if (mark.phase === 'removing') {
      throw new OperatorError(
        'Everything was copied and compared, and is being removed at its source. Run the command without --give-up to finish.',
      );
    }
    for (const database of this.#all) await database.forgetProgress();
    const { shardOf } = this.#options;
    for (const [index, database] of this.#all.entries()) {
      if (database.mark?.id !== mark.id) continue;
      await removeMisplaced(
        database.database,
        (device) => shardOf(device, this.#from) !== index,
        () => {},
      );
      await database.settle(undefined);
    }
    await this.#end();
  }

  get #first(): ReshardedDatabase {
    const [first] = this.#all;
    if (first === undefined) throw new Error('a store has a database');
    return first;
  }

  get #mark(): Mark | undefined {
    return this.#first.mark;
  }

  /** Databases that devices leave: when growing all old ones, when shrinking the removed ones. */
  get #sources(): Member[] {
    const isGrowing = this.#to > this.#from;
    return this.#members.filter(({ index }) => (isGrowing ? index < this.#from : index >= this.#to));
  }

  /** Databases that devices move to. */
  get #targets(): Member[] {
    const isGrowing = this.#to > this.#from;
    return this.#members.filter(({ index }) => (isGrowing ? index >= this.#from : index < this.#to));
  }

  get #members(): Member[] {
    return this.#all.map((database, index) => ({ index, database }));
  }

  #placement(index: number): Placement {
    return { index, from: this.#from, to: this.#to, shardOf: this.#options.shardOf };
  }

  /** A removed database belongs to no store afterwards. */
  #identityAfter(index: number): ShardIdentity {
    return { index, databases: index < this.#to ? this.#to : 0 };
  }

  /** Checks a database that this change has not marked yet against its list. @throws OperatorError */
  async #checkWhole(index: number, { database, mark }: ReshardedDatabase): Promise<void> {
    if (mark !== undefined) {
      if (this.#mark === undefined || mark.id !== this.#mark.id) throw otherChange();
      return;
    }
    if (index >= this.#from) return checkAdded(database, index);
    await checkKnown(database, index, this.#from);
    if (index >= this.#to && !this.#options.leaveLog) await refuseRecords(database, index);
  }

  async #copyFrom({ index, database: source }: Member): Promise<void> {
    await copyMisplaced(source.database, {
      placement: this.#placement(index),
      databases: this.#all.map(({ database }) => database),
      doneOf: (kind) => source.doneOf(kind),
      onPage: async (kind, last, passed) => {
        await source.note(kind, last);
        await refuseServed(source.database);
        this.#options.progress.add(passed);
      },
    });
  }

  /** @throws OperatorError where the copy differs from its source */
  async #compare(): Promise<ReshardedRows> {
    const { shardOf, progress } = this.#options;
    const [before, after] = [new Map<string, RowDigest>(), new Map<string, RowDigest>()];
    for (const { index, database } of this.#sources) {
      const leaves = (device: DeviceKey): boolean => shardOf(device, this.#to) !== index;
      await digestRows(database.database, leaves, before, (keys) => progress.add(keys));
    }
    for (const { index, database } of this.#targets) {
      const isNew = (device: DeviceKey): boolean => isNewHere(this.#placement(index), device);
      await digestRows(database.database, isNew, after, (keys) => progress.add(keys));
    }
    for (const [kind, moved] of before) {
      const other = after.get(kind) ?? new RowDigest();
      if (moved.isSame(other)) continue;
      throw new OperatorError(
        `The copy differs from its source: ${kind} (${moved.count} to move, ${other.count} moved). Nothing was removed, and no server accepts the databases. Check whether a server was started meanwhile, undo this change with --give-up, and start over.`,
      );
    }
    return before;
  }

  /** The first database last: as long as it is not served, none is. */
  async #end(): Promise<void> {
    for (const database of [...this.#all].reverse()) await database.end();
  }
}
