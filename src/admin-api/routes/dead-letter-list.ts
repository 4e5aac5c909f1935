import { yieldToEventLoop } from '../../core/async.ts';
import type { DeadLetter, DeadLetterFilter } from '../../domain/mail/ended-mail.ts';
import type { Page, Shard } from '../../domain/shard.ts';

/** What this thread may be held for before its other work has its turn. */
const heldMsMax = 5;

/**
 * A page of a fleet's dead letters in order of mail id, over all shards. Each look of a shard is bounded, so a page may
 * be short, or empty, and yet have a next one: what is sure to be in order is answered, and where to go on.
 */
export async function listDeadLetters(
  shards: readonly Shard[],
  fleetId: string,
  filter: DeadLetterFilter,
  after: string,
  limit: number,
): Promise<Page<DeadLetter>> {
  const found: { cursor: string; letter: DeadLetter }[] = [];
  /** The least place up to which a shard has looked that may have more. */
  let horizon: string | undefined;
  let sinceMs = performance.now();
  for (const shard of shards) {
    const { items, next } = await shard.deadLetters(fleetId, filter, after, limit);
    for (const letter of items) found.push({ cursor: cursorOf(letter), letter });
    if (next !== null && (horizon === undefined || next < horizon)) horizon = next;
    if (performance.now() - sinceMs < heldMsMax) continue;
    await yieldToEventLoop();
    sinceMs = performance.now();
  }
  const sure = found.filter(({ cursor }) => horizon === undefined || cursor <= horizon);
  sure.sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
  const page = sure.slice(0, limit);
  const next = sure.length > limit ? (page.at(-1)?.cursor ?? null) : (horizon ?? null);
  return { items: page.map(({ letter }) => letter), next };
}

/** As shards have it: mail id and device in hexadecimal digits, which sort as they do. */
function cursorOf({ mailId, device }: DeadLetter): string {
  return mailId.toString('hex') + Buffer.from(device, 'latin1').toString('hex');
}
