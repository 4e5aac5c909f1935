import { type Static, Type } from 'typebox';
import { yieldToEventLoop } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { DeadLetter, DeadLetterFilter, DeathReason } from '../../domain/mail/ended-mail.ts';
import type { Page, Shard } from '../../domain/shard.ts';
import { deviceId, listOf, nullable, time } from '../request/documents.ts';
import { parseTime, timeTextOf } from '../request/times.ts';

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

const reasons: readonly DeathReason[] = ['rejected', 'expired', 'over_requeued', 'mailbox_full'];

/** Which letters: the same in a query and in the bodies of `:replay` and `:drop`. */
export const letterFilter = {
  device_id: Type.Optional(deviceId),
  name: Type.Optional(Type.String({ maxLength: 255 })),
  reason: Type.Optional(Type.Enum([...reasons])),
  from: Type.Optional(Type.String({ description: 'Dead at that time or later, ISO 8601 with a time zone.' })),
  to: Type.Optional(Type.String({ description: 'Dead before that time.' })),
};
const filterDocument = Type.Object(letterFilter, { additionalProperties: false });

/** A place among the letters: mail id and device in hexadecimal digits. */
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
 * Where a walk over letters goes on, and up to which time of death it takes them: that of its first call. For whatever
 * a walk queues anew may die again, as a newer mail further on, and would be taken again, and again.
 */
interface Walk {
  after: string;
  diedBeforeMs: number;
}

export function walkOf(cursor: string): Walk {
  const bound = cursor.slice(cursorDigits);
  return {
    after: cursor.slice(0, cursorDigits),
    diedBeforeMs: bound === '' ? Date.now() + 1 : Number.parseInt(bound, 16),
  };
}

/** The cursor of the next call. */
export function walkText({ after, diedBeforeMs }: Walk): string {
  return after + diedBeforeMs.toString(16).padStart(boundDigits, '0');
}

/** By their ids, or all that match a filter, some at a time. */
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
        description: '`next` of the call before. Letters that died since the first call are not taken.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000, description: 'Letters of one call; 100 unless given.' }),
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

/** One of both, for to replay or drop everything must be said. @throws ApiError invalid_body. */
export function checkSelection({ letters, filter }: Static<typeof letterSelection>): void {
  if ((letters === undefined) === (filter === undefined)) {
    throw new ApiError('invalid_body', { msg: 'Give either letters or a filter; {} as filter takes all.' });
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
