import type { DeadLetterDocument, LetterFilter, LetterSelectionBody } from '../../contract/dead-letter.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { DeadLetter, DeadLetterFilter, LetterOrder } from '../../domain/mail/ended-mail.ts';
import type { Page } from '../../domain/page.ts';
import type { Shard } from '../../domain/shard.ts';
import { parseTime, timeTextOf } from '../request/times.ts';
import type { Turn } from '../request/turn.ts';

/** Which letters of a fleet, in which order, and where a page of them begins. */
export interface LetterPageQuery {
  fleetId: string;
  filter: DeadLetterFilter;
  order: LetterOrder;
  after: string;
}

/**
 * Returns a page of a fleet's dead letters in order of mail id, over all shards. Each shard scans a bounded number, so a
 * page may be short or empty and still have a next one: it has only what is certain to be in order.
 */
export async function listDeadLetters(
  shards: readonly Shard[],
  { fleetId, filter, order, after }: LetterPageQuery,
  limit: number,
  turn: Turn,
): Promise<Page<DeadLetter>> {
  const isBefore = (one: string, other: string): boolean => (order === 'oldest' ? one < other : one > other);
  const found: { cursor: string; letter: DeadLetter }[] = [];
  /** The first position reached by a shard that may have more letters. */
  let horizon: string | undefined;
  for (const shard of shards) {
    await turn();
    const { items, next } = await shard.deadLetters.list(fleetId, filter, after, limit, order);
    for (const letter of items) found.push({ cursor: cursorOf(letter), letter });
    if (next !== null && (horizon === undefined || isBefore(next, horizon))) horizon = next;
  }
  const sure = found.filter(({ cursor }) => horizon === undefined || !isBefore(horizon, cursor));
  sure.sort((a, b) => (isBefore(a.cursor, b.cursor) ? -1 : 1));
  const page = sure.slice(0, limit);
  const next = sure.length > limit ? (page.at(-1)?.cursor ?? null) : (horizon ?? null);
  return { items: page.map(({ letter }) => letter), next };
}

/** Formats a cursor as shards do: mail id and device in hexadecimal digits, which sort like them. */
function cursorOf({ mailId, device }: DeadLetter): string {
  return mailId.toString('hex') + Buffer.from(device, 'latin1').toString('hex');
}

const cursorDigits = 68;
const boundDigits = 12;

/**
 * Position of a bulk operation over several calls, and the time of its first call, after which dead letters are not
 * selected: a replayed mail may die again, as a newer mail further on, and would be replayed forever.
 */
interface BulkCursor {
  after: string;
  diedBeforeMs: number;
}

export function parseBulkCursor(cursor: string): BulkCursor {
  const bound = cursor.slice(cursorDigits);
  return {
    after: cursor.slice(0, cursorDigits),
    diedBeforeMs: bound === '' ? Date.now() + 1 : Number.parseInt(bound, 16),
  };
}

export function formatBulkCursor({ after, diedBeforeMs }: BulkCursor): string {
  return after + diedBeforeMs.toString(16).padStart(boundDigits, '0');
}

/** @throws ApiError bad_request. */
export function deadLetterFilterOf(
  fleetId: string,
  { device_id: id, name, reason, from, to }: LetterFilter,
): DeadLetterFilter {
  return {
    ...(id !== undefined && { device: deviceKeyOf(fleetId, id) }),
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { reasons: [reason].flat() }),
    ...(from !== undefined && { fromMs: parseTime('from', from) }),
    ...(to !== undefined && { toMs: parseTime('to', to) }),
  };
}

/** Requires letters or a filter, so that nobody replays or drops everything by accident. @throws ApiError invalid_body. */
export function checkSelection({ letters, filter }: LetterSelectionBody): void {
  if ((letters === undefined) === (filter === undefined)) {
    throw new ApiError('invalid_body', {
      msg: 'Give either letters or a filter; {} as the filter selects all.',
    });
  }
}

export function describeLetter(letter: DeadLetter): DeadLetterDocument {
  return {
    mail_id: formatUuid(letter.mailId),
    device_id: deviceIdOf(letter.device),
    name: letter.name,
    reason: letter.reason,
    died_at: timeTextOf(letter.diedAtMs),
    queued_at: timeTextOf(letter.queuedAtMs),
    fetch_count: letter.fetchCount,
    requeue_count: letter.requeueCount,
    payload_bytes: letter.payloadBytes,
  };
}
