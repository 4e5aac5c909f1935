import { expect } from 'vitest';
import type { AttentionDocument } from '../../../src/contract/monitoring/attention.ts';
import type { TestFleet } from '../devices/device.ts';

/**
 * Settles once the fleet needs attention for what the sentence says. A page that is opened then shows it at once, and one
 * that was opened before only when it asks again, which is rarely.
 */
export async function untilNoticed({ server, fleetId }: TestFleet, sentence: RegExp): Promise<void> {
  const sentences = async (): Promise<string> => {
    const { body } = await server.admin<AttentionDocument>('GET', `/fleets/${fleetId}/attention`);
    return body.items.map((item) => item.sentence).join('\n');
  };
  await expect.poll(sentences).toMatch(sentence);
}
