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
import { forgetLogPlaces, type LogPlaces } from './log-places.ts';
import {
  copyMisplaced,
  countRows,
  digestRows,
  isNewHere,
  type Placement,
  type PlaceOf,
  removeMisplaced,
} from './misplaced-rows.ts';
import { checkAdded, checkKnown, checkLists, makeKeyRoom, refuseRecords } from './rebalance-checks.ts';
import { type Mark, otherChange, RebalancedDatabase } from './rebalanced-database.ts';

export interface RebalanceOptions {
  /** Of the databases, in the order of `store.shards`: as it is, and as it is to be. */
  from: readonly string[];
  to: readonly string[];
  placeOf: PlaceOf;
  logPlaces: readonly LogPlaces[];
  /** A database may go although there are records in its log. */
  leaveLog: boolean;
  progress: CopyProgress;
  log: Log;
}

/** What was moved: of each kind how many rows, and a digest. */
export type Moved = ReadonlyMap<string, RowDigest>;

/** Keys are walked to copy, to compare, on either side, and to remove. */
const walks = 3;

/**
 * Moves the devices whose place changes with the number of databases, with all that is theirs but the log. It may end
 * at any moment: the same call again goes on, and until then no server takes the databases. Nothing is taken away
 * before everything was copied and both sides were compared. Undefined where all of it was done before.
 * @throws OperatorError, ApiError unavailable
 */
export async function rebalance(options: RebalanceOptions): Promise<Moved | undefined> {
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

/** Ends a change that has taken nothing away yet: all is as it was before. @throws OperatorError, ApiError unavailable */
export async function giveUpRebalance(options: RebalanceOptions): Promise<void> {
  const change = await Change.open(options);
  try {
    await change.giveUp();
  } finally {
    await change.close();
  }
}

interface Member {
  index: number;
  database: RebalancedDatabase;
}

/** A change of the number of databases. */
class Change {
  readonly #options: RebalanceOptions;
  readonly #from: number;
  readonly #to: number;
  /** Those of before and after, in order. */
  readonly #all: readonly RebalancedDatabase[];

  private constructor(options: RebalanceOptions, all: readonly RebalancedDatabase[]) {
    this.#options = options;
    this.#from = options.from.length;
    this.#to = options.to.length;
    this.#all = all;
  }

  /** @throws OperatorError */
  static async open(options: RebalanceOptions): Promise<Change> {
    const { from, to, log } = options;
    checkLists(from, to);
    const urls = from.length > to.length ? from : to;
    const databases = urls.map((url) => openDatabase(url, log));
    try {
      const all: RebalancedDatabase[] = [];
      for (const [index, database] of databases.entries()) {
        if (index < from.length) await checkTables(database);
        else await migrate(database);
        all.push(await RebalancedDatabase.open(database));
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

  /** Whether the databases are what they are to be already. */
  async isDone(): Promise<boolean> {
    if (this.#first.mark !== undefined) return false;
    for (const [index, { database, mark }] of this.#all.entries()) {
      const place = await readShardIdentity(database);
      if (mark !== undefined || place === undefined || !isSameShardIdentity(place, this.#placeAfter(index)))
        return false;
    }
    return true;
  }

  /**
   * From here on nobody serves the databases. The first one is marked first, and its mark is the one that holds.
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
    // One that began meanwhile did not see the mark.
    for (const { database } of this.#all) await refuseServed(database);
  }

  /** Answers what has moved: of one that had come further before, what was compared then is not known any more. */
  async copy(): Promise<Moved> {
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
    const { placeOf, progress } = this.#options;
    await Promise.all(
      this.#sources.map(({ index, database }) =>
        removeMisplaced(
          database.database,
          (device) => placeOf(device, this.#to) !== index,
          (keys) => progress.add(keys),
        ),
      ),
    );
    const kept = Math.min(this.#from, this.#to);
    for (const places of this.#options.logPlaces) {
      await forgetLogPlaces(this.#first.database, places, kept);
    }
    for (const [index, database] of this.#all.entries()) await database.settle(this.#placeAfter(index));
    await this.#end();
  }

  async giveUp(): Promise<void> {
    const mark = this.#mark;
    if (mark === undefined) throw new OperatorError('No devices are being moved between these databases.');
    if (mark.from !== this.#from || mark.to !== this.#to) throw otherChange();
    if (mark.phase === 'removing') {
      throw new OperatorError(
        'Everything was copied and compared, and is being removed from where it was: this change can only be brought to its end.',
      );
    }
    for (const database of this.#all) await database.forgetProgress();
    const { placeOf } = this.#options;
    for (const [index, database] of this.#all.entries()) {
      if (database.mark?.id !== mark.id) continue;
      await removeMisplaced(
        database.database,
        (device) => placeOf(device, this.#from) !== index,
        () => {},
      );
      await database.settle(undefined);
    }
    await this.#end();
  }

  get #first(): RebalancedDatabase {
    const [first] = this.#all;
    if (first === undefined) throw new Error('a store has a database');
    return first;
  }

  get #mark(): Mark | undefined {
    return this.#first.mark;
  }

  /** Those that devices leave: with more databases all that there were, with fewer those that go. */
  get #sources(): Member[] {
    const isGrowing = this.#to > this.#from;
    return this.#members.filter(({ index }) => (isGrowing ? index < this.#from : index >= this.#to));
  }

  /** Those that devices come to. */
  get #targets(): Member[] {
    const isGrowing = this.#to > this.#from;
    return this.#members.filter(({ index }) => (isGrowing ? index >= this.#from : index < this.#to));
  }

  get #members(): Member[] {
    return this.#all.map((database, index) => ({ index, database }));
  }

  #placement(index: number): Placement {
    return { index, from: this.#from, to: this.#to, placeOf: this.#options.placeOf };
  }

  /** One that goes is of no store afterwards. */
  #placeAfter(index: number): ShardIdentity {
    return { index, databases: index < this.#to ? this.#to : 0 };
  }

  /** A database that this change has not marked yet is what its list says. @throws OperatorError */
  async #checkWhole(index: number, { database, mark }: RebalancedDatabase): Promise<void> {
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

  /** @throws OperatorError where what was copied is not what there was. */
  async #compare(): Promise<Moved> {
    const { placeOf, progress } = this.#options;
    const [before, after] = [new Map<string, RowDigest>(), new Map<string, RowDigest>()];
    for (const { index, database } of this.#sources) {
      const leaves = (device: DeviceKey): boolean => placeOf(device, this.#to) !== index;
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
        `What was copied is not what there is: ${kind} (${moved.count} to move, ${other.count} moved). Nothing was taken away, and no server takes the databases. Was one started meanwhile? End this change by --give-up, and begin anew.`,
      );
    }
    return before;
  }

  /** The first one last: as long as it is not served none is. */
  async #end(): Promise<void> {
    for (const database of [...this.#all].reverse()) await database.end();
  }
}
