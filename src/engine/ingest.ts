import type { IdempotencyLimits } from '../shard/key-refusal.ts';
import { decodeLogRecord } from '../shard/log-record.ts';
import type { Operations } from './operation.ts';

/** What devices send: a record, and the key that it is not to be stored twice by (D18), in one transaction. */
export function ingestOperations(limits: IdempotencyLimits): Operations {
  return {
    ingest: {
      need(work, { device, idempotency }) {
        if (idempotency === undefined) return;
        work.claims.want(device, idempotency.key, idempotency.digest, limits);
      },
      apply(work, { device, idempotency, record }) {
        if (idempotency !== undefined) {
          const claim = work.claims.claim(device, idempotency.key, idempotency.digest, work.nowMs);
          if (claim !== 'stored') return claim;
        }
        const { kind, schema, payload } = decodeLogRecord(
          Buffer.from(record.buffer, record.byteOffset, record.byteLength),
          0,
        );
        work.append({ device, kind, schema, payload });
        return 'stored';
      },
    },
  };
}
