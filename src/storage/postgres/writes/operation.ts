import type { Ingest, IngestOutcome } from '../../../domain/records/record.ts';
import type { ShardWrites } from '../../../domain/write.ts';
import type { Transaction } from '../connection/database.ts';
import type { Work } from './unit-of-work.ts';

/** Every write that the engine knows: what it is given and what it answers. No record crosses threads here. */
export interface Writes extends ShardWrites {
  ingest: { given: Ingest; answer: IngestOutcome };
}
export type WriteType = keyof Writes;
export type Answer<T extends WriteType = WriteType> = Writes[T]['answer'];

/** A write that shares its transaction with others: what it needs is loaded for all of them at once. */
export interface Operation<T extends WriteType> {
  /** Names all that `apply` will look at. */
  need(work: Work, given: Writes[T]['given']): void;
  /** Done in memory, after the writes before it. A throw fails this write alone: nothing of it is to be left then. */
  apply(work: Work, given: Writes[T]['given']): Answer<T>;
}

/** A write that has a transaction to itself, which is committed behind it with what it left in `work`. */
export type Errand<T extends WriteType> = (
  work: Work,
  transaction: Transaction,
  given: Writes[T]['given'],
) => Promise<Answer<T>>;

export type Operations = { readonly [T in WriteType]?: Operation<T> };
export type Errands = { readonly [T in WriteType]?: Errand<T> };
