import type { IdempotencyLimits } from '../../../domain/idempotency.ts';
import type { Operations } from '../writes/operation.ts';

/** What devices send: a record, and the key that it is not to be stored twice by (D18), in one transaction. */
export function ingestOperations(limits: IdempotencyLimits): Operations {
  return {
    ingest: {
      need(work, { device, idempotency }) {
        if (idempotency === undefined) return;
        work.claims.want(device, idempotency.key, idempotency.digest, limits);
      },
      apply(work, { device, kind, schema, payload, idempotency }) {
        if (idempotency !== undefined) {
          const claim = work.claims.claim(device, idempotency.key, idempotency.digest, work.nowMs);
          if (claim !== 'stored') return claim;
        }
        work.append({ device, kind, schema, payload });
        return 'stored';
      },
    },
  };
}
