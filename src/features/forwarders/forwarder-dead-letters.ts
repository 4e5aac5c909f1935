import { generateUuid, parseUuid } from '../../core/uuid.ts';
import type { StoredRecord } from '../../domain/records/record.ts';
import { Collection, type TableLayout } from '../../storage/tables/collection.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import { KeyCodec, uuidField } from '../../storage/tables/key-codec.ts';
import {
  DeadLetterQueue,
  type FailedRecord,
  type LetterLimits,
  letterCodec,
} from '../dead-letters/dead-letter-queue.ts';

/** A record that the destination refused, as stored. */
export interface StoredForwarderDeadLetter extends FailedRecord {
  reason: string;
}

/** A letter queued to be sent again; another `replay` with each time. */
export interface QueuedReplay {
  record: StoredRecord;
  replay: Buffer;
}

/** `full`: the forwarder may have no more dead letters; `share_full`: the record's device may not. */
export type DeadLetterOutcome = 'stored' | 'full' | 'share_full';

type LetterKey = [forwarder: Buffer, record: Buffer];
const key = new KeyCodec<LetterKey>(uuidField, uuidField);

/** forwarderLetters: forwarder, record. One refused again, after a crash for example, is there once. */
export const forwarderLetterTable: TableLayout<LetterKey, StoredForwarderDeadLetter> = {
  name: 'forwarderLetters',
  key,
  value: letterCodec(),
  isOwn: ([, id], { record }) => id.equals(record.id),
};

/** forwarderReplays: forwarder, record → a UUIDv7, while the letter is queued to be sent again. */
export const forwarderReplayTable: TableLayout<LetterKey, [replay: Buffer]> = {
  name: 'forwarderReplays',
  key,
  value: new KeyCodec(uuidField),
};

/** The dead letters of all forwarders, in the journal of the main thread. */
export class ForwarderDeadLetters extends DeadLetterQueue<StoredForwarderDeadLetter, Buffer> {
  readonly #journal: Journal;
  readonly #replays: Collection<LetterKey, [replay: Buffer]>;

  constructor(journal: Journal, limits: LetterLimits) {
    super({ journal, table: forwarderLetterTable, isNewestFirst: false, limits: () => limits });
    this.#journal = journal;
    this.#replays = new Collection(journal, forwarderReplayTable);
  }

  /** Settles once durable. @throws ApiError unavailable. */
  async add(forwarder: Buffer, record: StoredRecord, reason: string): Promise<DeadLetterOutcome> {
    let outcome: DeadLetterOutcome = 'stored';
    await this.#journal.commit(() => {
      if (!this.has(forwarder, record.id) && !this.hasRoomFor(forwarder, record.device)) {
        outcome = this.isFull(forwarder) ? 'full' : 'share_full';
        return;
      }
      this.put(forwarder, record.id, { record, reason, failedAtMs: Date.now() });
      this.#replays.delete([forwarder, record.id]);
    });
    return outcome;
  }

  isReplayed(forwarder: Buffer, id: Buffer): boolean {
    return this.#replays.has([forwarder, id]);
  }

  /** Letters queued to be sent again, by record id. */
  replays(forwarder: Buffer, limit: number): QueuedReplay[] {
    this.refresh();
    const { rows } = this.#replays.list([forwarder], { limit });
    return rows.flatMap(([[, id], [replay]]) => {
      const letter = this.get(forwarder, id);
      return letter === undefined ? [] : [{ record: letter.record, replay }];
    });
  }

  /** Queues one letter, or all, to be sent again; returns how many. @throws ApiError unavailable. */
  replay(forwarder: Buffer, id?: Buffer): Promise<number> {
    return this.changeEach(forwarder, id, (one) => {
      if (!this.has(forwarder, one)) return false;
      this.#replays.put([forwarder, one], [generateUuid()]);
      return true;
    });
  }

  /** Removes accepted letters, except those refused or replayed again meanwhile. @throws ApiError unavailable. */
  async settle(forwarder: Buffer, letters: readonly QueuedReplay[]): Promise<void> {
    await this.#journal.commit(() => {
      for (const { record, replay } of letters) {
        const [current] = this.#replays.get([forwarder, record.id]) ?? [];
        if (current?.equals(replay)) this.remove(forwarder, record.id);
      }
    });
  }

  override remove(forwarder: Buffer, id: Buffer): boolean {
    this.#replays.delete([forwarder, id]);
    return super.remove(forwarder, id);
  }
}

/** Key prefix of a forwarder: the 16 bytes of its id. */
export function forwarderKey(id: string): Buffer {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new Error('a forwarder has a UUIDv7');
  return bytes;
}
