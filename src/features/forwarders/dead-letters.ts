import { FairShare } from '../../core/fair-share.ts';
import { formatUuid, generateUuid, parseUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import type { Page } from '../../domain/shard.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import type { ForwarderJournal } from './tables.ts';

/** A record that the destination refused. */
export interface StoredForwarderDeadLetter {
  record: StoredRecord;
  reason: string;
  deadAtMs: number;
  /** Set while it is to be sent once more; another one each time that is asked for. */
  replay: Buffer | undefined;
}

/** What became of one that was refused. `full`: nobody may have one more; `share_full`: its device may not. */
export type Burial = 'kept' | 'full' | 'share_full';

/** Of one transaction. */
const changedMax = 1_000;
const lastId = Buffer.alloc(uuidBytesLength, 0xff);

/** The records that the destinations of all forwarders refused, in the environment of the main thread. */
export class ForwarderDeadLetters {
  readonly #journal: ForwarderJournal;
  readonly #letters: Table;
  readonly #replays: Table;
  readonly #lettersMax: number;
  readonly #counts = new Map<string, number>();
  /** Who has them, of forwarders whose letters became more since the start. */
  readonly #owners = new Map<string, FairShare>();

  constructor(journal: ForwarderJournal, lettersMax: number) {
    this.#journal = journal;
    this.#letters = journal.tables.forwarderLetters;
    this.#replays = journal.tables.forwarderReplays;
    this.#lettersMax = lettersMax;
  }

  count(forwarder: Buffer): number {
    const id = forwarder.toString('hex');
    let count = this.#counts.get(id);
    if (count === undefined) {
      this.#journal.refresh();
      count = this.#letters.getKeysCount(rangeOf(forwarder));
      this.#counts.set(id, count);
    }
    return count;
  }

  /** Durable when it settles. @throws ApiError unavailable. */
  async add(forwarder: Buffer, record: StoredRecord, reason: string): Promise<Burial> {
    const key = Buffer.concat([forwarder, record.id]);
    const id = forwarder.toString('hex');
    let burial: Burial = 'kept';
    await this.#change(forwarder, () => {
      const isKnown = this.#letters.doesExist(key);
      const owners = this.#owners.get(id) ?? this.#ownersOf(forwarder);
      this.#owners.set(id, owners);
      if (!isKnown && !owners.take(record.device)) {
        burial = owners.used >= this.#lettersMax ? 'full' : 'share_full';
        return;
      }
      this.#letters.putSync(key, encode(record, reason));
      this.#replays.removeSync(key);
    });
    return burial;
  }

  get(forwarder: Buffer, recordId: string): StoredForwarderDeadLetter | undefined {
    const id = parseUuid(recordId);
    if (id === undefined) return undefined;
    this.#journal.refresh();
    return this.#read(Buffer.concat([forwarder, id]));
  }

  /** In order of the records' ids, from the one after `after`. */
  page(forwarder: Buffer, after: string | undefined, limit: number): Page<StoredForwarderDeadLetter> {
    this.#journal.refresh();
    const { start, end } = rangeOf(forwarder);
    const id = after === undefined ? undefined : parseUuid(after);
    const from = id === undefined ? start : Buffer.concat([forwarder, id, Buffer.alloc(1)]);
    const items = [...this.#letters.getKeys({ start: from, end, limit: limit + 1 })];
    const letters = items.slice(0, limit).flatMap((key) => this.#read(key) ?? []);
    const last = items.length > limit ? letters.at(-1) : undefined;
    return { items: letters, next: last === undefined ? null : formatUuid(last.record.id) };
  }

  /** Those that are to be sent once more, in order of the records' ids. */
  replays(forwarder: Buffer, limit: number): StoredForwarderDeadLetter[] {
    this.#journal.refresh();
    const keys = [...this.#replays.getKeys({ ...rangeOf(forwarder), limit })];
    return keys.flatMap((key) => this.#read(key) ?? []);
  }

  /** Has one, or all, sent once more. Answers how many. @throws ApiError unavailable. */
  async replay(forwarder: Buffer, recordId?: string): Promise<number> {
    return this.#each(forwarder, recordId, (key) => this.#replays.putSync(key, generateUuid()));
  }

  /** One, or all. Answers how many there were. @throws ApiError unavailable. */
  async drop(forwarder: Buffer, recordId?: string): Promise<number> {
    return this.#each(forwarder, recordId, (key) => this.#remove(key));
  }

  /** Those that were taken at last; not one that was refused, or asked for, once more. @throws ApiError unavailable. */
  async settle(forwarder: Buffer, letters: readonly StoredForwarderDeadLetter[]): Promise<void> {
    await this.#change(forwarder, () => {
      for (const { record, replay } of letters) {
        const key = Buffer.concat([forwarder, record.id]);
        if (replay !== undefined && this.#replays.getBinary(key)?.equals(replay)) this.#remove(key);
      }
    });
  }

  /** Of a forwarder that was deleted. */
  async forget(forwarder: Buffer): Promise<void> {
    await this.drop(forwarder);
    this.#counts.delete(forwarder.toString('hex'));
  }

  async #each(
    forwarder: Buffer,
    recordId: string | undefined,
    change: (key: Buffer) => void,
  ): Promise<number> {
    this.#journal.refresh();
    const id = recordId === undefined ? undefined : parseUuid(recordId);
    if (recordId !== undefined && id === undefined) return 0;
    const keys =
      id === undefined ? [...this.#letters.getKeys(rangeOf(forwarder))] : [Buffer.concat([forwarder, id])];
    let changed = 0;
    for (let at = 0; at < keys.length; at += changedMax) {
      await this.#change(forwarder, () => {
        for (const key of keys.slice(at, at + changedMax)) {
          if (!this.#letters.doesExist(key)) continue;
          change(key);
          changed += 1;
        }
      });
    }
    return changed;
  }

  /** How many there are is counted anew: LMDB alone knows what became of a transaction. */
  async #change(forwarder: Buffer, apply: () => void): Promise<void> {
    const id = forwarder.toString('hex');
    try {
      await this.#journal.commit(apply);
    } catch (error) {
      this.#owners.delete(id);
      throw error;
    } finally {
      this.#counts.delete(id);
    }
  }

  /** By reading them all: once, and again when some were removed. */
  #ownersOf(forwarder: Buffer): FairShare {
    const owners = new FairShare(this.#lettersMax);
    for (const { key, value } of this.#letters.getRange(rangeOf(forwarder))) {
      owners.hold(decodeLetter(key, value).record.device);
    }
    return owners;
  }

  /** Inside a write transaction. */
  #remove(key: Buffer): void {
    this.#letters.removeSync(key);
    this.#replays.removeSync(key);
    this.#owners.delete(key.toString('hex', 0, uuidBytesLength));
  }

  #read(key: Buffer): StoredForwarderDeadLetter | undefined {
    const value = this.#letters.getBinary(key);
    if (value === undefined) return undefined;
    const replay = this.#replays.getBinary(key);
    return { ...decodeLetter(key, value), replay: replay && Buffer.from(replay) };
  }
}

type Kept = Pick<StoredRecord, 'device' | 'kind' | 'schema' | 'payload' | 'storedAtMs'> & {
  reason: string;
  deadAtMs: number;
};

function encode({ device, kind, schema, payload, storedAtMs }: StoredRecord, reason: string): Buffer {
  const kept: Kept = { device, kind, schema, payload, storedAtMs, reason, deadAtMs: Date.now() };
  return pack(kept);
}

/** @throws Error for what is none. */
export function decodeLetter(key: Buffer, value: Buffer): Omit<StoredForwarderDeadLetter, 'replay'> {
  const { reason, deadAtMs, ...kept } = unpack(value) as Kept;
  const id = Buffer.from(key.subarray(uuidBytesLength));
  const record = { ...kept, payload: Buffer.from(kept.payload), id, position: 0, isRelocated: false };
  return { record, reason, deadAtMs };
}

function rangeOf(forwarder: Buffer): { start: Buffer; end: Buffer } {
  return { start: forwarder, end: Buffer.concat([forwarder, lastId, lastId]) };
}
