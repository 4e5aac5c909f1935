import { type Static, Type } from 'typebox';
import { yieldToEventLoop } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { DeadLetter, DeadLetterFilter, DeathReason } from '../../domain/mail/ended-mail.ts';
import type { Page, Shard } from '../../domain/shard.ts';
import { deviceId, listOf, nullable, time } from '../request/documents.ts';
import { parseTime, timeTextOf } from '../request/times.ts';

/** Time after which listing yields to the other work of this thread. */
const turnMsMax = 5;

/**
 * Returns a page of a fleet's dead letters in order of mail id, over all shards. Each shard scans a bounded number, so a
 * page may be short or empty and still have a next one: it has only what is certain to be in order.
 */
export async function listDeadLetters(
  shards: readonly Shard[],
  fleetId: string,
  filter: DeadLetterFilter,
  after: string,
  limit: number,
): Promise<Page<DeadLetter>> {
  const found: { cursor: string; letter: DeadLetter }[] = [];
  /** The smallest position reached by a shard that may have more letters. */
  let horizon: string | undefined;
  let sinceMs = performance.now();
  for (const shard of shards) {
    const { items, next } = await shard.deadLetters(fleetId, filter, after, limit);
    for (const letter of items) found.push({ cursor: cursorOf(letter), letter });
    if (next !== null && (horizon === undefined || next < horizon)) horizon = next;
    if (performance.now() - sinceMs < turnMsMax) continue;
    await yieldToEventLoop();
    sinceMs = performance.now();
  }
  const sure = found.filter(({ cursor }) => horizon === undefined || cursor <= horizon);
  sure.sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
  const page = sure.slice(0, limit);
  const next = sure.length > limit ? (page.at(-1)?.cursor ?? null) : (horizon ?? null);
  return { items: page.map(({ letter }) => letter), next };
}

/** Formats a cursor as shards do: mail id and device in hexadecimal digits, which sort like them. */
function cursorOf({ mailId, device }: DeadLetter): string {
  return mailId.toString('hex') + Buffer.from(device, 'latin1').toString('hex');
}

const reasons: readonly DeathReason[] = ['rejected', 'expired', 'over_requeued', 'mailbox_full'];

/** Filter of letters: the same in a query and in the bodies of `:replay` and `:drop`. */
export const letterFilter = {
  device_id: Type.Optional(deviceId),
  name: Type.Optional(Type.String({ maxLength: 255 })),
  reason: Type.Optional(Type.Enum([...reasons])),
  from: Type.Optional(Type.String({ description: 'Died at that time or later, ISO 8601 with a time zone.' })),
  to: Type.Optional(Type.String({ description: 'Died before that time.' })),
};
const filterDocument = Type.Object(letterFilter, { additionalProperties: false });

/** Position in a list of letters: mail id and device in hexadecimal digits. */
export const letterCursor = Type.String({ default: '', pattern: '^([0-9a-f]{68})?$' });

const letterDocument = Type.Object({
  mail_id: Type.String(),
  device_id: deviceId,
  name: Type.String(),
  reason: Type.Enum([...reasons]),
  died_at: time,
  queued_at: nullable('string'),
  fetch_count: Type.Integer(),
  requeue_count: Type.Integer(),
  payload_bytes: Type.Integer(),
});
export const letterList = listOf(letterDocument);

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

/** Selects letters by id, or all that match a filter, some at a time. */
export const letterSelection = Type.Object(
  {
    letters: Type.Optional(
      Type.Array(
        Type.Object({ device_id: deviceId, mail_id: Type.String() }, { additionalProperties: false }),
        {
          minItems: 1,
          maxItems: 1_000,
        },
      ),
    ),
    filter: Type.Optional(filterDocument),
    after: Type.Optional(
      Type.String({
        pattern: '^([0-9a-f]{68}([0-9a-f]{12})?)?$',
        description: '`next` of the previous call. Letters that died since the first call are not selected.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000, description: 'Maximum letters per call; 100 by default.' }),
    ),
  },
  { additionalProperties: false },
);

/** @throws ApiError bad_request. */
export function deadLetterFilterOf(
  fleetId: string,
  { device_id: id, name, reason, from, to }: Static<typeof filterDocument>,
): DeadLetterFilter {
  return {
    ...(id !== undefined && { device: deviceKeyOf(fleetId, id) }),
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { reason }),
    ...(from !== undefined && { fromMs: parseTime('from', from) }),
    ...(to !== undefined && { toMs: parseTime('to', to) }),
  };
}

/** Requires letters or a filter, so that nobody replays or drops everything by accident. @throws ApiError invalid_body. */
export function checkSelection({ letters, filter }: Static<typeof letterSelection>): void {
  if ((letters === undefined) === (filter === undefined)) {
    throw new ApiError('invalid_body', {
      msg: 'Give either letters or a filter; {} as the filter selects all.',
    });
  }
}

export function describeLetter(letter: DeadLetter): Static<typeof letterDocument> {
  return {
    mail_id: formatUuid(letter.mailId),
    device_id: deviceIdOf(letter.device),
    name: letter.name,
    reason: letter.reason,
    died_at: new Date(letter.diedAtMs).toISOString(),
    queued_at: timeTextOf(letter.queuedAtMs),
    fetch_count: letter.fetchCount,
    requeue_count: letter.requeueCount,
    payload_bytes: letter.payloadBytes,
  };
}
