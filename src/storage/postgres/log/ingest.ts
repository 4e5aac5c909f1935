import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { Operations } from '../writes/operation.ts';

/** Writes of device requests: a record, and its idempotency key (D18), in one transaction. */
export function ingestOperations(limits: IdempotencyLimits): Operations {
  return {
    ingest: {
      preload(work, { device, idempotency }) {
        if (idempotency === undefined) return;
        work.claims.preload(device, idempotency.key, idempotency.digest, limits);
      },
      apply(work, { idempotency, ...record }) {
        if (idempotency !== undefined) {
          const claim = work.claims.claim(record.device, idempotency.key, idempotency.digest, work.nowMs);
          if (claim !== 'stored') return claim;
        }
        work.append(record);
        return 'stored';
      },
    },
  };
}
