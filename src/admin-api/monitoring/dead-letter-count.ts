import { type LetterCountDocument, letterGroupsMax } from '../../contract/dead-letter.ts';
import type { DeadLetter, DeadLetterFilter, DeathReason } from '../../domain/mail/ended-mail.ts';
import type { Page } from '../../domain/page.ts';
import type { Shard } from '../../domain/shard.ts';
import { timeTextOf } from '../request/times.ts';
import type { Turn } from '../request/turn.ts';
import { listDeadLetters } from '../routes/dead-letter-list.ts';

/** Bounds of one count; beyond, it says that there are more. */
const lettersMax = 10_000;
const lettersPerPage = 1_000;
const countMsMax = 200;

interface Group {
  name: string;
  reason: DeathReason;
  letters: number;
  lastDiedAtMs: number;
}

/** Counts the letters that match by mail and reason, the newest ones up to the bounds. */
export async function countDeadLetters(
  shards: readonly Shard[],
  fleetId: string,
  filter: DeadLetterFilter,
  turn: Turn,
): Promise<LetterCountDocument> {
  const untilMs = performance.now() + countMsMax;
  const groups = new Map<string, Group>();
  let letters = 0;
  let after: string | null = '';
  while (after !== null && letters < lettersMax && performance.now() < untilMs) {
    const query = { fleetId, filter, order: 'newest', after } as const;
    const page: Page<DeadLetter> = await listDeadLetters(shards, query, lettersPerPage, turn);
    letters += page.items.length;
    for (const letter of page.items) addTo(groups, letter);
    after = page.next;
  }
  const largest = [...groups.values()].sort((one, other) => other.letters - one.letters);
  return {
    letters,
    is_all: after === null,
    groups: largest.slice(0, letterGroupsMax).map(({ lastDiedAtMs, ...group }) => ({
      ...group,
      last_died_at: timeTextOf(lastDiedAtMs),
    })),
  };
}

function addTo(groups: Map<string, Group>, { name, reason, diedAtMs }: DeadLetter): void {
  const key = `${reason} ${name}`;
  const group = groups.get(key);
  if (group === undefined) groups.set(key, { name, reason, letters: 1, lastDiedAtMs: diedAtMs });
  else {
    group.letters += 1;
    group.lastDiedAtMs = Math.max(group.lastDiedAtMs, diedAtMs);
  }
}
