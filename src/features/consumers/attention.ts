import { type AttentionSource, lostOf } from '../../admin-api/request/attention-source.ts';
import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import type { ConsumerService, ConsumerStatus } from './consumer-service.ts';

const secondsBehindMax = 600;

function ofConsumer({ name, enabled, shards }: ConsumerStatus): AttentionItem[] {
  const found: AttentionItem[] = [];
  const lost = shards.reduce((sum, one) => sum + one.lost, 0);
  const seconds = Math.floor(Math.max(0, ...shards.map(({ secondsBehind }) => secondsBehind)));
  if (enabled && seconds > secondsBehindMax) {
    const sentence = `The consumer ${name} is ${Math.floor(seconds / 60)} minutes behind.`;
    found.push(attentionItem('consumer_behind', sentence, { name, count: seconds }));
  }
  if (lost > 0) found.push(lostOf('consumer', name, lost));
  return found;
}

/** Lists consumers that are behind or have lost records. */
export const attentionToConsumers =
  (consumers: Pick<ConsumerService, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await consumers.list(fleetId)).flatMap(ofConsumer);
