import { type Static, Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, listOf, time } from '../../admin-api/request/documents.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import { forwarderParameters } from './documents.ts';
import type { ForwarderDeadLetter } from './service.ts';

const letterDocument = Type.Object({
  record_id: Type.String(),
  device_id: Type.String(),
  kind: Type.String(),
  schema: Type.String(),
  stored_at: time,
  refused_at: time,
  reason: Type.String(),
  replayed: Type.Boolean({ description: 'Whether it is queued to be sent again.' }),
});
/** Documents the shape of the text from `letterText`. */
const letterWithPayload = Type.Unsafe<string>(
  Type.Interface([letterDocument], { payload: Type.Object({}, { description: 'As it was sent.' }) }),
);
const letterPath = Type.Interface([forwarderParameters], { record_id: Type.String() });
const replayedDocument = Type.Object({ replayed: Type.Integer() });
const droppedDocument = Type.Object({ dropped: Type.Integer() });

function describeLetter({
  record,
  reason,
  deadAtMs,
  isReplayed,
}: ForwarderDeadLetter): Static<typeof letterDocument> {
  return {
    record_id: formatUuid(record.id),
    device_id: deviceIdOf(record.device),
    kind: record.kind,
    schema: record.schema,
    stored_at: new Date(record.storedAtMs).toISOString(),
    refused_at: new Date(deadAtMs).toISOString(),
    reason,
    replayed: isReplayed,
  };
}

/** Keeps the payload's own text (D11). */
function letterText(letter: ForwarderDeadLetter): string {
  return `${JSON.stringify(describeLetter(letter)).slice(0, -1)},"payload":${letter.record.payload.toString('utf8')}}`;
}

const listing = {
  summary: 'List dead letters of a forwarder',
  description: 'Oldest record first, without payloads.',
  params: forwarderParameters,
  querystring: Type.Object({
    after: Type.Optional(Type.String({ maxLength: 36 })),
    // Each is read with its payload.
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 100 }),
  }),
  response: { 200: listOf(letterDocument), ...errorAnswers },
};

const listLetters =
  ({ forwarders }: AdminContext): Handler<typeof listing> =>
  async ({ params: { fleet_id, name }, query: { after, limit } }) => {
    const query = { limit, ...(after !== undefined && { after }) };
    const { items, next } = await forwarders.deadLetters(fleet_id, name, query);
    return { items: items.map(describeLetter), next };
  };

const showing = {
  summary: 'Show a dead letter of a forwarder with its payload',
  params: letterPath,
  response: { 200: letterWithPayload, ...errorAnswers },
};

const showLetter =
  ({ forwarders }: AdminContext): Handler<typeof showing> =>
  async ({ params: { fleet_id, name, record_id } }, reply) =>
    reply.type('application/json').send(letterText(await forwarders.deadLetter(fleet_id, name, record_id)));

const replayingOne = {
  summary: 'Replay a dead letter of a forwarder',
  params: letterPath,
  response: { 200: replayedDocument, ...errorAnswers },
};

const replayOne =
  ({ forwarders }: AdminContext): Handler<typeof replayingOne> =>
  async ({ params: { fleet_id, name, record_id }, audited }) => {
    const replayed = await forwarders.replay(fleet_id, name, record_id);
    audited.about = { replayed };
    return { replayed };
  };

const replayingAll = {
  summary: 'Replay all dead letters of a forwarder',
  description: 'Sends them again after what was sent since. Each stays until the destination accepts it.',
  params: forwarderParameters,
  response: { 200: replayedDocument, ...errorAnswers },
};

const replayAll =
  ({ forwarders }: AdminContext): Handler<typeof replayingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const replayed = await forwarders.replay(fleet_id, name);
    audited.about = { replayed };
    return { replayed };
  };

const droppingOne = {
  summary: 'Drop a dead letter of a forwarder',
  params: letterPath,
  response: { 200: droppedDocument, ...errorAnswers },
};

const dropOne =
  ({ forwarders }: AdminContext): Handler<typeof droppingOne> =>
  async ({ params: { fleet_id, name, record_id }, audited }) => {
    const dropped = await forwarders.drop(fleet_id, name, record_id);
    audited.about = { dropped };
    return { dropped };
  };

const droppingAll = {
  summary: 'Drop all dead letters of a forwarder',
  params: forwarderParameters,
  response: { 200: droppedDocument, ...errorAnswers },
};

const dropAll =
  ({ forwarders }: AdminContext): Handler<typeof droppingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const dropped = await forwarders.drop(fleet_id, name);
    audited.about = { dropped };
    return { dropped };
  };

/** Adds the routes of a forwarder's dead letters. */
export function addForwarderLetterRoutes(app: AdminApp, context: AdminContext): void {
  const root = '/fleets/:fleet_id/forwarders/:name/dead-letters';
  app.get(root, { config: { scope: 'read' }, schema: listing }, listLetters(context));
  app.get(`${root}/:record_id`, { config: { scope: 'read' }, schema: showing }, showLetter(context));
  app.post(
    `${root}/:record_id/replay`,
    { config: { scope: 'provision' }, schema: replayingOne },
    replayOne(context),
  );
  app.post(`${root}/replay`, { config: { scope: 'provision' }, schema: replayingAll }, replayAll(context));
  app.delete(`${root}/:record_id`, { config: { scope: 'provision' }, schema: droppingOne }, dropOne(context));
  app.delete(root, { config: { scope: 'provision' }, schema: droppingAll }, dropAll(context));
}
