import { formatUuid, generateUuid } from '../../src/core/uuid.ts';
import { parseIdempotencyKey, requestDigest } from '../../src/domain/idempotency-key.ts';
import { IdempotencyKeys } from '../../src/storage/tables/idempotency-keys.ts';
import { configWith } from '../../test/harness/server/config.ts';
import { type Group, repeated } from './microbench.ts';
import { cycled, payload } from './samples.ts';
import { openTemporaryShard } from './temporary-shard.ts';

const claimsPerTransaction = 256;

/** Cost that an Idempotency-Key adds to a request, in the front end and in the store. */
export async function idempotency(): Promise<Group> {
  const { environment, devices, ...opened } = await openTemporaryShard(1_000);
  const config = configWith();
  const texts = Array.from({ length: 1_000 }, () => formatUuid(generateUuid()));
  const store = new IdempotencyKeys(environment.rows('idempotency'), environment.rows('times'), config);
  const digest = requestDigest('datapoint/reading', payload);
  const claim = (key: () => Uint8Array, expected: string) => (): Promise<void> =>
    environment.write(() => {
      for (let index = 0; index < claimsPerTransaction; index += 1) {
        const outcome = store.claim(cycled(devices, index).device.device, key(), digest);
        if (outcome !== expected) throw new Error(`a claim was ${outcome}, not ${expected}`);
      }
    });
  const claims = {
    conditions: { batch: claimsPerTransaction },
    operations: claimsPerTransaction,
    isAsync: true,
  };
  const known = generateUuid();
  await claim(() => known, 'stored')();
  return {
    benches: [
      repeated('idempotency key parsed', (index) => parseIdempotencyKey(cycled(texts, index))),
      repeated('digest of a request', () => requestDigest('datapoint/reading', payload)),
      {
        workload: 'new key claimed in the store, with its commit',
        ...claims,
        run: claim(generateUuid, 'stored'),
      },
      {
        workload: 'known key found in the store, with a commit',
        ...claims,
        run: claim(() => known, 'replayed'),
      },
    ],
    [Symbol.asyncDispose]: opened[Symbol.asyncDispose],
  };
}
