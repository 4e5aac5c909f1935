import type {
  DeadLetterDocument,
  DroppedLetterDocument,
  LetterFilter,
  LetterSelectionBody,
  ReplayedLetterDocument,
} from '../../../contract/dead-letter.ts';
import type { ListDocument } from '../../../contract/document.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';
import type { LetterCounts, Verb } from './letter-list.tsx';

const lettersPerCall = 200;

/** Letters of one call: of a list, and where the next call goes on. */
function* selections(letters: readonly DeadLetterDocument[]): Generator<LetterSelectionBody> {
  for (let at = 0; at < letters.length; at += lettersPerCall) {
    const some = letters.slice(at, at + lettersPerCall);
    yield { letters: some.map(({ device_id, mail_id }) => ({ device_id, mail_id })) };
  }
}

/** Replays or drops letters, some at a time, or all that fit a filter, and tells how far it is. @throws CallError. */
export async function settleLetters(
  fleetId: string,
  verb: Verb,
  letters: readonly DeadLetterDocument[] | LetterFilter,
  signal: AbortSignal,
  onProgress: (counts: LetterCounts) => void,
): Promise<void> {
  const counts: Record<string, number> = {};
  const path = below(pathTo('/fleets/{fleet_id}/dead-letters', { fleet_id: fleetId }), `:${verb}`, {});
  onProgress({});
  const bodies = isListed(letters) ? selections(letters) : [{ filter: letters }];
  for (const body of bodies) {
    for (let after: string | null = ''; after !== null; ) {
      const answer: ListDocument<ReplayedLetterDocument | DroppedLetterDocument> = await call('POST', path, {
        body: 'filter' in body ? { ...body, after, limit: lettersPerCall } : body,
        signal,
      });
      for (const { result } of answer.items) counts[result] = (counts[result] ?? 0) + 1;
      after = answer.next;
      onProgress({ ...counts });
    }
  }
}

function isListed(
  letters: readonly DeadLetterDocument[] | LetterFilter,
): letters is readonly DeadLetterDocument[] {
  return Array.isArray(letters);
}
