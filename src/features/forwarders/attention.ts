import {
  type AttentionSource,
  attentionToReader,
  behindClause,
  deadClause,
  lostClause,
  positionsBehindMax,
  type ReaderTrouble,
} from '../../admin-api/request/attention-source.ts';
import type { AttentionItem } from '../../contract/monitoring/attention.ts';
import type { ForwarderStatus, ForwarderWork } from './forwarder-work.ts';

function ofForwarder(status: ForwarderStatus): AttentionItem[] {
  const { forwarder, state, behind, secondsBehind, lost, deadLetters, lastError } = status;
  const found: ReaderTrouble[] = [];
  if (state === 'backing_off' || state === 'dead_letters_full') {
    const why =
      state === 'dead_letters_full'
        ? 'it has too many dead letters'
        : (lastError?.msg ?? 'an attempt failed');
    // The words of a receiver or a library may be a sentence already.
    const clause = `delivers nothing now: ${why.replace(/[.\s]+$/, '')}`;
    found.push({ kind: 'forwarder_held', clause });
  }
  if (state !== 'paused' && behind > positionsBehindMax) {
    const clause = behindClause({ seconds: secondsBehind, records: behind });
    found.push({ kind: 'forwarder_behind', clause, count: behind });
  }
  if (lost > 0) found.push({ kind: 'forwarder_lost', clause: lostClause(lost), count: lost });
  if (deadLetters > 0)
    found.push({ kind: 'forwarder_dead_letters', clause: deadClause(deadLetters), count: deadLetters });
  return attentionToReader('forwarder', forwarder.name, found);
}

/** Lists forwarders that are held, behind, or have lost records or dead letters. */
export const attentionToForwarders =
  (forwarders: Pick<ForwarderWork, 'list'>): AttentionSource =>
  async (fleetId) =>
    (await forwarders.list(fleetId)).flatMap(ofForwarder);
