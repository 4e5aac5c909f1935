import { ApiError } from '../../../core/errors.ts';
import { uuidBytesLength } from '../../../core/uuid.ts';
import type { Page } from '../../../domain/page.ts';
import { rangeUnder } from '../../../storage/tables/key-codec.ts';
import type { StateEntry, StateQuery } from '../action-work.ts';
import { type StateLimits, stateRefusalOf } from '../declaration/state-value.ts';
import type { ActionJournal } from '../tables.ts';
import { readState, stateKey, writeState } from './action-state.ts';

/** Keys removed per transaction. */
const removedMax = 1_000;

/**
 * The states of actions, as operators see and change them. A change is a write like that of a run: a run that has read
 * the key before, and ends after it, runs again.
 */
export class StateEditor {
  readonly #journal: ActionJournal;
  readonly #limits: StateLimits;

  constructor(journal: ActionJournal, limits: StateLimits) {
    this.#journal = journal;
    this.#limits = limits;
  }

  /** In the order of the keys' bytes. */
  list(action: Buffer, { after, limit }: StateQuery): Page<StateEntry> {
    this.#journal.refresh();
    const range = rangeUnder(action);
    // The least key behind the last one seen.
    if (after !== undefined) range.start = Buffer.concat([stateKey(action, after), Buffer.of(0)]);
    const items: StateEntry[] = [];
    for (const { key, value } of this.#journal.tables.state.entries({ ...range, limit: limit + 1 })) {
      if (items.length === limit) return { items, next: items.at(-1)?.key ?? null };
      items.push({
        key: key.toString('utf8', action.length),
        value: value.toString('utf8', uuidBytesLength),
      });
    }
    return { items, next: null };
  }

  /** @throws ApiError state_key_not_found. */
  get(action: Buffer, key: string): StateEntry {
    this.#journal.refresh();
    const value = readState(this.#journal.tables, action, key, new Map());
    if (value === 'null') throw new ApiError('state_key_not_found');
    return { key, value };
  }

  /** @throws ApiError invalid_body, limit_reached. */
  async set(action: Buffer, key: string, value: unknown): Promise<StateEntry> {
    const refusal = stateRefusalOf(key, value, this.#limits);
    if (refusal !== undefined) throw new ApiError('invalid_body', { msg: refusal });
    const entry = { key, value: JSON.stringify(value) };
    const { actionStateKeysMax: keysMax } = this.#limits.current;
    let isWritten = false;
    await this.#journal.commit(() => {
      isWritten = writeState(this.#journal.tables, action, [entry], keysMax);
    });
    if (isWritten) return entry;
    const msg = `The state has ${keysMax} keys already (actionStateKeysMax). Delete one first.`;
    throw new ApiError('limit_reached', { msg });
  }

  /** Deletes one key or, without one, all; returns how many. @throws ApiError state_key_not_found. */
  async delete(action: Buffer, key: string | undefined): Promise<number> {
    if (key === undefined) return this.#deleteAll(action);
    let isDeleted = false;
    await this.#journal.commit(() => {
      isDeleted = this.#journal.tables.state.delete(stateKey(action, key));
    });
    if (!isDeleted) throw new ApiError('state_key_not_found');
    return 1;
  }

  async #deleteAll(action: Buffer): Promise<number> {
    const { state } = this.#journal.tables;
    let deleted = 0;
    let found: number;
    do {
      found = 0;
      await this.#journal.commit(() => {
        const keys = [...state.keys({ ...rangeUnder(action), limit: removedMax })];
        for (const key of keys) state.delete(key);
        found = keys.length;
      });
      deleted += found;
    } while (found === removedMax);
    return deleted;
  }
}
