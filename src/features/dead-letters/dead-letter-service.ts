import type { Awaitable } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import type { DeadLetterQueue, FailedRecord, LetterPage, LetterQuery } from './dead-letter-queue.ts';

/**
 * The dead letters of all actions, or of all forwarders, as the admin API uses them. Every method throws ApiError
 * fleet_not_found, or that of its owner, where its path names none.
 */
export interface DeadLetterService<Letter, Id> {
  list(fleetId: string, name: string, query: LetterQuery<Id>): Awaitable<LetterPage<Letter, Id>>;
  /** @throws ApiError dead_letter_not_found. */
  get(fleetId: string, name: string, id: Id): Awaitable<Letter>;
  /** Replays one letter, or all; returns how many. @throws ApiError dead_letter_not_found. */
  replay(fleetId: string, name: string, id?: Id): Promise<number>;
  /** Removes one letter, or all; returns how many. @throws ApiError dead_letter_not_found. */
  drop(fleetId: string, name: string, id?: Id): Promise<number>;
}

export interface LocalDeadLettersOptions<Stored extends FailedRecord, Letter, Id> {
  queue: DeadLetterQueue<Stored, Id>;
  /** @throws ApiError where there is none. */
  ownerOf(fleetId: string, name: string): Buffer;
  describe(owner: Buffer, id: Id, letter: Stored): Letter;
  replay(fleetId: string, name: string, id: Id | undefined): Promise<number>;
}

/** Serves the dead letters of this node to the admin API. */
export class LocalDeadLetterService<Stored extends FailedRecord, Letter, Id>
  implements DeadLetterService<Letter, Id>
{
  readonly #options: LocalDeadLettersOptions<Stored, Letter, Id>;

  constructor(options: LocalDeadLettersOptions<Stored, Letter, Id>) {
    this.#options = options;
  }

  list(fleetId: string, name: string, query: LetterQuery<Id>): LetterPage<Letter, Id> {
    const { queue, ownerOf, describe } = this.#options;
    const owner = ownerOf(fleetId, name);
    const { items, next } = queue.list(owner, query);
    return { items: items.map(([id, letter]) => describe(owner, id, letter)), next };
  }

  get(fleetId: string, name: string, id: Id): Letter {
    const { queue, ownerOf, describe } = this.#options;
    const owner = ownerOf(fleetId, name);
    const letter = queue.get(owner, id);
    if (letter === undefined) throw new ApiError('dead_letter_not_found');
    return describe(owner, id, letter);
  }

  async replay(fleetId: string, name: string, id?: Id): Promise<number> {
    if (id !== undefined) this.get(fleetId, name, id);
    return this.#options.replay(fleetId, name, id);
  }

  async drop(fleetId: string, name: string, id?: Id): Promise<number> {
    const { queue, ownerOf } = this.#options;
    if (id !== undefined) this.get(fleetId, name, id);
    return queue.drop(ownerOf(fleetId, name), id);
  }
}
