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

/** Letters that something is to be done with: some, or all that fit the filter on the screen. */
export type Letters = { listed: readonly DeadLetterDocument[] } | { filter: LetterFilter };

/** How many letters came to what end so far. */
export interface LettersProgress {
  counts: Readonly<Record<string, number>>;
  isDone: boolean;
}

const lettersPerCall = 200;

/** Letters of one call: of a list, and where the next call goes on. */
function* selections(letters: readonly DeadLetterDocument[]): Generator<LetterSelectionBody> {
  for (let at = 0; at < letters.length; at += lettersPerCall) {
    const some = letters.slice(at, at + lettersPerCall);
    yield { letters: some.map(({ device_id, mail_id }) => ({ device_id, mail_id })) };
  }
}

/** Replays or drops letters, some at a time, and tells how far it is. @throws CallError. */
export async function settleLetters(
  fleetId: string,
  verb: 'replay' | 'drop',
  letters: Letters,
  signal: AbortSignal,
  onProgress: (progress: LettersProgress) => void,
): Promise<void> {
  const counts: Record<string, number> = {};
  const path = below(pathTo('/fleets/{fleet_id}/dead-letters', { fleet_id: fleetId }), `:${verb}`, {});
  const bodies = 'filter' in letters ? [letters] : selections(letters.listed);
  for (const body of bodies) {
    for (let after: string | null = ''; after !== null; ) {
      const answer: ListDocument<ReplayedLetterDocument | DroppedLetterDocument> = await call('POST', path, {
        body: 'filter' in letters ? { ...body, after, limit: lettersPerCall } : body,
        signal,
      });
      for (const { result } of answer.items) counts[result] = (counts[result] ?? 0) + 1;
      after = answer.next;
      onProgress({ counts: { ...counts }, isDone: false });
    }
  }
  onProgress({ counts, isDone: true });
}

/** One letter among others: an id of a mail is unique in its device alone. */
export function keyOfLetter({ device_id, mail_id }: DeadLetterDocument): string {
  return `${device_id}/${mail_id}`;
}
