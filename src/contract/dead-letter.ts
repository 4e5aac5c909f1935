import { type Static, type TSchema, Type } from 'typebox';
import type { Scope } from '../core/scope.ts';
import {
  closedObject,
  deviceId,
  listOf,
  nullable,
  oneOrSeveral,
  pageLimit,
  repeatedParameter,
  time,
} from './document.ts';
import { payloadBody } from './mail.ts';
import { declareRoutes, type RouteDeclaration } from './routes/route.ts';

const reasons = ['rejected', 'expired', 'over_requeued', 'mailbox_full'] as const;
const reason = Type.Enum([...reasons]);
const anyReason = 'It died for any of these reasons.';

/** Filter of letters in the bodies of `:replay` and `:drop`; all members must match. */
const letterFilter = closedObject({
  device_id: Type.Optional(deviceId),
  name: Type.Optional(Type.String({ maxLength: 255 })),
  reason: Type.Optional(oneOrSeveral(reason, reasons.length, anyReason)),
  from: Type.Optional(Type.String({ description: 'Died at that time or later, ISO 8601 with a time zone.' })),
  to: Type.Optional(Type.String({ description: 'Died before that time.' })),
});
export type LetterFilter = Static<typeof letterFilter>;
/** The same in the query of a list. */
const letterQuery = {
  ...letterFilter.properties,
  reason: repeatedParameter(reason, reasons.length, anyReason),
};
/** Groups in one count at most. */
export const letterGroupsMax = 100;
const letterCountDocument = Type.Object({
  letters: Type.Integer(),
  is_all: Type.Boolean({ description: 'False: there are more than were counted.' }),
  groups: Type.Array(
    Type.Object({ name: Type.String(), reason, letters: Type.Integer(), last_died_at: time }),
    { description: `The largest first, at most ${letterGroupsMax} of them.` },
  ),
});
export type LetterCountDocument = Static<typeof letterCountDocument>;
/** A mail that failed for good. */
const deadLetterDocument = Type.Object({
  mail_id: Type.String(),
  device_id: deviceId,
  name: Type.String(),
  reason,
  died_at: time,
  queued_at: nullable('string'),
  fetch_count: Type.Integer(),
  requeue_count: Type.Integer(),
  payload_bytes: Type.Integer(),
});
export type DeadLetterDocument = Static<typeof deadLetterDocument>;

/** Selects letters by id, or all that match a filter, some at a time. */
const letterSelectionBody = closedObject({
  letters: Type.Optional(
    Type.Array(closedObject({ device_id: deviceId, mail_id: Type.String() }), {
      minItems: 1,
      maxItems: 1_000,
    }),
  ),
  filter: Type.Optional(letterFilter),
  after: Type.Optional(
    Type.String({
      pattern: '^([0-9a-f]{68}([0-9a-f]{12})?)?$',
      description: '`next` of the previous call. Letters that died since the first call are not selected.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: 'Maximum letters per call; 100 by default.' }),
  ),
});
export type LetterSelectionBody = Static<typeof letterSelectionBody>;

const outcomeMembers = { mail_id: Type.String(), device_id: Type.String() };
const replayedLetterDocument = Type.Object({
  ...outcomeMembers,
  result: Type.Enum([
    'replayed',
    'not_found',
    'mailbox_full',
    'fleet_mail_full',
    'device_not_found',
    'schema_mismatch',
    'unavailable',
  ]),
  new_mail_id: Type.Optional(Type.String()),
});
export type ReplayedLetterDocument = Static<typeof replayedLetterDocument>;
const droppedLetterDocument = Type.Object({
  ...outcomeMembers,
  result: Type.Enum(['dropped', 'not_found', 'unavailable']),
});
export type DroppedLetterDocument = Static<typeof droppedLetterDocument>;

/** `/fleets/{fleet_id}/dead-letters`: mail that was rejected, expired or requeued too often (D16). */
export const mailDeadLetterRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/dead-letters': {
    scope: 'read',
    summary: 'List dead letters',
    description:
      'Lists rejected, expired and over-requeued mail, and delayed mail that found its mailbox full. A page may be short or empty and still have a next one.',
    query: Type.Object({
      ...letterQuery,
      order: Type.Unsafe<'newest' | 'oldest'>({
        type: 'string',
        enum: ['newest', 'oldest'],
        default: 'newest',
        description: 'By the time at which the mail was sent.',
      }),
      // Mail id and device in hexadecimal digits.
      after: Type.String({ default: '', pattern: '^([0-9a-f]{68})?$' }),
      limit: pageLimit,
    }),
    answers: { 200: listOf(deadLetterDocument) },
  },
  'GET /fleets/{fleet_id}/dead-letters:count': {
    scope: 'read',
    summary: 'Count dead letters',
    description:
      'Counts the dead letters that a list has with the same filters, by mail and reason: the newest ones, for a bounded time.',
    query: Type.Object(letterQuery),
    answers: { 200: letterCountDocument },
  },
  'GET /fleets/{fleet_id}/dead-letters/{device_id}/{mail_id}': {
    scope: 'read',
    summary: 'Show a dead letter with its payload',
    description: 'Answers the payload of a letter as the body, the rest in X-Mail-… headers.',
    answers: { 200: payloadBody },
  },
  'POST /fleets/{fleet_id}/dead-letters:replay': {
    scope: 'mail',
    summary: 'Replay dead letters',
    description:
      "Queues letters again, each as a new mail with the fleet's TTL and limits, and removes them: those listed, or those that match a filter. One call handles at most `limit` letters; `next` is the `after` of the next call.",
    body: letterSelectionBody,
    answers: { 200: listOf(replayedLetterDocument) },
  },
  'POST /fleets/{fleet_id}/dead-letters:drop': {
    scope: 'mail',
    summary: 'Drop dead letters',
    description: 'Removes letters permanently: those listed, or those that match a filter, as in :replay.',
    body: letterSelectionBody,
    answers: { 200: listOf(droppedLetterDocument) },
  },
});

/** The dead letters of a resource that has a name in its fleet, as their routes need them. */
interface DeadLetterResource<Listed, Shown, Params, After, Limit> {
  /** The resource, in words: `an action`. */
  of: string;
  /** Scope for replaying and dropping them. */
  scope: Scope;
  /** `shown` has the payload too. */
  documents: { listed: Listed; shown: Shown };
  /** The parameter that names a letter, if it is more than a text. */
  params: Params;
  after: After;
  limit: Limit;
  texts: { listing: string; replayingAll: string };
}

/** Declares the routes below a resource that list, show, replay and drop its dead letters. */
export function deadLettersOf<
  Listed extends TSchema,
  Shown extends TSchema,
  Params extends Record<string, TSchema>,
  After extends TSchema,
  Limit extends TSchema,
>(resource: DeadLetterResource<Listed, Shown, Params, After, Limit>) {
  const { of, scope, documents, params, after, limit, texts } = resource;
  const replayed = { 200: Type.Object({ replayed: Type.Integer() }) };
  const dropped = { 200: Type.Object({ dropped: Type.Integer() }) };
  return {
    list: {
      scope: 'read',
      summary: `List dead letters of ${of}`,
      description: `${texts.listing} A page of large ones ends before \`limit\`, with a \`next\`.`,
      query: Type.Object({ after: Type.Optional(after), limit }),
      answers: { 200: listOf(documents.listed) },
    },
    show: {
      scope: 'read',
      summary: `Show a dead letter of ${of} with its payload`,
      params,
      answers: { 200: documents.shown },
    },
    replay: { scope, summary: `Replay a dead letter of ${of}`, params, answers: replayed },
    drop: { scope, summary: `Drop a dead letter of ${of}`, params, answers: dropped },
    replayAll: {
      scope,
      summary: `Replay all dead letters of ${of}`,
      description: texts.replayingAll,
      answers: replayed,
    },
    dropAll: { scope, summary: `Drop all dead letters of ${of}`, answers: dropped },
  } satisfies Record<string, RouteDeclaration>;
}
