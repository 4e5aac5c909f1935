import type { Ingest, IngestOutcome } from '../../../domain/records/record.ts';
import type { ShardWrites } from '../../../domain/write.ts';
import type { Transaction } from '../connection/database.ts';
import type { UnitOfWork } from './unit-of-work.ts';

/** Every write that the engine knows: what it is given and what it answers. No record crosses threads here. */
export interface OperationWrites extends ShardWrites {
  ingest: { given: Ingest; answer: IngestOutcome };
}
export type OperationType = keyof OperationWrites;
export type OperationAnswer<T extends OperationType = OperationType> = OperationWrites[T]['answer'];

/** A write that shares its transaction with others: what it needs is loaded for all of them at once. */
export interface Operation<T extends OperationType> {
  /** Names all that `apply` will look at. */
  need(work: UnitOfWork, given: OperationWrites[T]['given']): void;
  /** Done in memory, after the writes before it. A throw fails this write alone: nothing of it is to be left then. */
  apply(work: UnitOfWork, given: OperationWrites[T]['given']): OperationAnswer<T>;
}

/** A write that has a transaction to itself, which is committed behind it with what it left in `work`. */
export type ExclusiveOperation<T extends OperationType> = (
  work: UnitOfWork,
  transaction: Transaction,
  given: OperationWrites[T]['given'],
) => Promise<OperationAnswer<T>>;

export type Operations = { readonly [T in OperationType]?: Operation<T> };
export type ExclusiveOperations = { readonly [T in OperationType]?: ExclusiveOperation<T> };
