import type { Ingest, IngestOutcome } from '../../../domain/records/record.ts';
import type { Sync, SyncOutcome } from '../../../domain/sync/sync.ts';
import type { ShardWrites } from '../../../domain/write.ts';
import type { Transaction } from '../connection/database.ts';
import type { UnitOfWork } from './unit-of-work.ts';

/** All writes of the engine: parameters and answers. No record crosses threads here. */
export interface OperationWrites extends ShardWrites {
  ingest: { params: Ingest; answer: IngestOutcome };
  sync: { params: Sync; answer: SyncOutcome };
}
export type OperationType = keyof OperationWrites;
export type OperationAnswer<T extends OperationType = OperationType> = OperationWrites[T]['answer'];

/** A write batched with others in one transaction: rows are preloaded for all of them at once. */
export interface Operation<T extends OperationType> {
  /** Names all rows that `apply` will read. */
  preload(work: UnitOfWork, params: OperationWrites[T]['params']): void;
  /**
   * Runs in memory, after the writes before it. An error fails this write alone, which must not have changed anything
   * yet.
   */
  apply(work: UnitOfWork, params: OperationWrites[T]['params']): OperationAnswer<T>;
}

/** A write in a transaction of its own, committed afterwards with what it left in `work`. */
export type ExclusiveOperation<T extends OperationType> = (
  work: UnitOfWork,
  transaction: Transaction,
  params: OperationWrites[T]['params'],
) => Promise<OperationAnswer<T>>;

export type Operations = { readonly [T in OperationType]?: Operation<T> };
export type ExclusiveOperations = { readonly [T in OperationType]?: ExclusiveOperation<T> };
