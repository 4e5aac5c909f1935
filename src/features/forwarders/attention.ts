import {
  type AttentionSource,
  deadOf,
  lostOf,
  positionsBehindMax,
} from '../../admin-api/request/attention-source.ts';
import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import type { ForwarderStatus, ForwarderWork } from './forwarder-work.ts';

function ofForwarder(status: ForwarderStatus): AttentionItem[] {
  const { forwarder, state, behind, lost, deadLetters, lastError } = status;
  const { name } = forwarder;
  const found: AttentionItem[] = [];
  if (state === 'backing_off' || state === 'dead_letters_full') {
    const why =
      state === 'dead_letters_full'
        ? 'it has too many dead letters'
        : (lastError?.msg ?? 'an attempt failed');
    // The words of a receiver or a library may be a sentence already.
    const sentence = `The forwarder ${name} delivers nothing now: ${why.replace(/[.\s]+$/, '')}.`;
    found.push(attentionItem('forwarder_held', sentence, { name }));
  }
  if (state !== 'paused' && behind > positionsBehindMax) {
    const sentence = `The forwarder ${name} is ${behind} positions of the logs behind.`;
    found.push(attentionItem('forwarder_behind', sentence, { name, count: behind }));
  }
  if (lost > 0) found.push(lostOf('forwarder', name, lost));
  if (deadLetters > 0) found.push(deadOf('forwarder', name, deadLetters));
  return found;
}

/** Lists forwarders that are held, behind, or have lost records or dead letters. */
export const attentionToForwarders =
  (forwarders: Pick<ForwarderWork, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await forwarders.list(fleetId)).flatMap(ofForwarder);
