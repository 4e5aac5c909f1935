import { FairShare } from '../../core/fair-share.ts';
import { formatUuid, generateUuid, parseUuid, uuidBytesLength } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import type { Page } from '../../domain/shard.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import type { ForwarderJournal } from './tables.ts';

/** A record that the destination refused, as stored. */
export interface StoredForwarderDeadLetter {
  record: StoredRecord;
  reason: string;
  deadAtMs: number;
  /** Set while it is queued to be sent again; a new value with each replay. */
  replay: Buffer | undefined;
}

/** `full`: the forwarder may have no more dead letters; `share_full`: the record's device may not. */
export type DeadLetterOutcome = 'stored' | 'full' | 'share_full';

/** Letters changed in one transaction. */
const changedMax = 1_000;
const lastId = Buffer.alloc(uuidBytesLength, 0xff);

/** The dead letters of all forwarders, in the journal of the main thread. */
export class ForwarderDeadLetters {
  readonly #journal: ForwarderJournal;
  readonly #letters: Table;
  readonly #replays: Table;
  readonly #lettersMax: number;
  readonly #counts = new Map<string, number>();
  /** Shares by device, for forwarders with new dead letters since the start. */
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

  /** Settles once durable. @throws ApiError unavailable. */
  async add(forwarder: Buffer, record: StoredRecord, reason: string): Promise<DeadLetterOutcome> {
    const key = Buffer.concat([forwarder, record.id]);
    const id = forwarder.toString('hex');
    let outcome: DeadLetterOutcome = 'stored';
    await this.#change(forwarder, () => {
      const isKnown = this.#letters.doesExist(key);
      const owners = this.#owners.get(id) ?? this.#ownersOf(forwarder);
      this.#owners.set(id, owners);
      if (!isKnown && !owners.take(record.device)) {
        outcome = owners.used >= this.#lettersMax ? 'full' : 'share_full';
        return;
      }
      this.#letters.putSync(key, encode(record, reason));
      this.#replays.removeSync(key);
    });
    return outcome;
  }

  get(forwarder: Buffer, recordId: string): StoredForwarderDeadLetter | undefined {
    const id = parseUuid(recordId);
    if (id === undefined) return undefined;
    this.#journal.refresh();
    return this.#read(Buffer.concat([forwarder, id]));
  }

  /** Lists letters by record id, after `after`. */
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

  /** Letters queued to be sent again, by record id. */
  replays(forwarder: Buffer, limit: number): StoredForwarderDeadLetter[] {
    this.#journal.refresh();
    const keys = [...this.#replays.getKeys({ ...rangeOf(forwarder), limit })];
    return keys.flatMap((key) => this.#read(key) ?? []);
  }

  /** Queues one letter, or all, to be sent again; returns how many. @throws ApiError unavailable. */
  async replay(forwarder: Buffer, recordId?: string): Promise<number> {
    return this.#each(forwarder, recordId, (key) => this.#replays.putSync(key, generateUuid()));
  }

  /** Removes one letter, or all; returns how many. @throws ApiError unavailable. */
  async drop(forwarder: Buffer, recordId?: string): Promise<number> {
    return this.#each(forwarder, recordId, (key) => this.#remove(key));
  }

  /** Removes accepted letters, except those refused or replayed again meanwhile. @throws ApiError unavailable. */
  async settle(forwarder: Buffer, letters: readonly StoredForwarderDeadLetter[]): Promise<void> {
    await this.#change(forwarder, () => {
      for (const { record, replay } of letters) {
        const key = Buffer.concat([forwarder, record.id]);
        if (replay !== undefined && this.#replays.getBinary(key)?.equals(replay)) this.#remove(key);
      }
    });
  }

  /** Removes everything of a deleted forwarder. */
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

  /** Invalidates the count either way: only LMDB knows whether a transaction took effect. */
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

  /** Computes the shares by reading all letters: once, and again after a removal. */
  #ownersOf(forwarder: Buffer): FairShare {
    const owners = new FairShare(this.#lettersMax);
    for (const { key, value } of this.#letters.getRange(rangeOf(forwarder))) {
      owners.hold(decodeLetter(key, value).record.device);
    }
    return owners;
  }

  /** Runs inside a write transaction. */
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

type StoredLetter = Pick<StoredRecord, 'device' | 'kind' | 'schema' | 'payload' | 'storedAtMs'> & {
  reason: string;
  deadAtMs: number;
};

function encode({ device, kind, schema, payload, storedAtMs }: StoredRecord, reason: string): Buffer {
  const letter: StoredLetter = { device, kind, schema, payload, storedAtMs, reason, deadAtMs: Date.now() };
  return pack(letter);
}

/** @throws Error for an invalid value. */
export function decodeLetter(key: Buffer, value: Buffer): Omit<StoredForwarderDeadLetter, 'replay'> {
  const { reason, deadAtMs, ...stored } = unpack(value) as StoredLetter;
  const id = Buffer.from(key.subarray(uuidBytesLength));
  const record = { ...stored, payload: Buffer.from(stored.payload), id, position: 0, isRelocated: false };
  return { record, reason, deadAtMs };
}

function rangeOf(forwarder: Buffer): { start: Buffer; end: Buffer } {
  return { start: forwarder, end: Buffer.concat([forwarder, lastId, lastId]) };
}
