import {
  type AttentionSource,
  attentionToReader,
  behindClause,
  lostClause,
  type ReaderTrouble,
} from '../../admin-api/request/attention-source.ts';
import type { AttentionItem } from '../../contract/monitoring/attention.ts';
import type { ConsumerService, ConsumerStatus } from './consumer-service.ts';

const secondsBehindMax = 600;

function ofConsumer({ name, enabled, shards }: ConsumerStatus): AttentionItem[] {
  const found: ReaderTrouble[] = [];
  const sumOf = (of: (shard: (typeof shards)[number]) => number) =>
    shards.reduce((sum, one) => sum + of(one), 0);
  const lost = sumOf((one) => one.lost);
  const seconds = Math.floor(Math.max(0, ...shards.map(({ secondsBehind }) => secondsBehind)));
  if (enabled && seconds > secondsBehindMax) {
    const clause = behindClause({ seconds, records: sumOf(({ behind }) => behind) });
    found.push({ kind: 'consumer_behind', clause, count: seconds });
  }
  if (lost > 0) found.push({ kind: 'consumer_lost', clause: lostClause(lost), count: lost });
  return attentionToReader('consumer', name, found);
}

/** Lists consumers that are behind or have lost records. */
export const attentionToConsumers =
  (consumers: Pick<ConsumerService, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await consumers.list(fleetId)).flatMap(ofConsumer);
