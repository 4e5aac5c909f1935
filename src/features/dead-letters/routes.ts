import { type TObject, type TSchema, type TUnsafe, Type } from 'typebox';
import type { AdminApp } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { droppedDocument, replayedDocument } from '../../contract/dead-letter.ts';
import { errorAnswers, listOf, namedPath } from '../../contract/document.ts';
import { ApiError } from '../../core/errors.ts';
import type { FailedRecord } from './dead-letter-queue.ts';
import type { DeadLetterService } from './service.ts';

/** The dead letters of a resource, as their routes need them. */
export interface DeadLetterResource<Letter extends FailedRecord, Id> {
  service: DeadLetterService<Letter, Id>;
  /** Route of what they are of, which has a name in its fleet, and what it is called: `an action`. */
  path: string;
  of: string;
  /** Scope for replaying and dropping them. */
  scope: 'admin' | 'provision';
  /** The parameter that names a letter, and its query: `after` and `limit`. */
  id: { name: string; schema: TSchema; after: TSchema; limit: TSchema };
  /** Undefined for what no letter can have. */
  parse(text: string): Id | undefined;
  format(id: Id): string;
  /** `shown` has the payload too. */
  documents: { listed: TObject; shown: TSchema };
  describe(letter: Letter): Record<string, unknown>;
  texts: { listing: string; replayingAll: string };
}

interface Path {
  fleet_id: string;
  name: string;
  [id: string]: string;
}

/** Adds `dead-letters` below a resource: to list, show, replay and drop them. */
export function addDeadLettersOf<Letter extends FailedRecord, Id>(
  app: AdminApp,
  resource: DeadLetterResource<Letter, Id>,
): void {
  addReads(app, resource);
  const { of } = resource;
  addChanges(app, resource, pathOfOne(resource), onePath(resource), `a dead letter of ${of}`);
  addChanges(app, resource, pathOfAll(resource), Type.Unsafe<Path>(namedPath), `all dead letters of ${of}`);
}

const pathOfAll = ({ path }: { path: string }): string => `${path}/dead-letters`;

function pathOfOne({ path, id }: { path: string; id: { name: string } }): string {
  return `${path}/dead-letters/:${id.name}`;
}

function onePath<Letter extends FailedRecord, Id>({ id }: DeadLetterResource<Letter, Id>) {
  return Type.Unsafe<Path>(Type.Interface([namedPath], { [id.name]: id.schema }));
}

/** @throws ApiError dead_letter_not_found for what no letter can have. */
function idOf<Letter extends FailedRecord, Id>(
  { id, parse }: DeadLetterResource<Letter, Id>,
  path: Path,
): Id {
  const parsed = parse(String(path[id.name]));
  if (parsed === undefined) throw new ApiError('dead_letter_not_found');
  return parsed;
}

function addReads<Letter extends FailedRecord, Id>(
  app: AdminApp,
  resource: DeadLetterResource<Letter, Id>,
): void {
  const route = routesOf(app);
  const { service, of, id, documents, describe, parse, format } = resource;
  const listing = {
    summary: `List dead letters of ${of}`,
    description: resource.texts.listing,
    params: Type.Unsafe<Path>(namedPath),
    querystring: Type.Object({ after: Type.Optional(id.after), limit: id.limit }),
    response: { 200: listOf(documents.listed), ...errorAnswers },
  };
  route('GET', pathOfAll(resource), 'read', listing, async ({ params, query }) => {
    const { after: text, limit } = query as { after?: string; limit: number };
    const after = text === undefined ? undefined : parse(String(text));
    const wanted = { limit, ...(after !== undefined && { after }) };
    const { items, next } = await service.list(params.fleet_id, params.name, wanted);
    return { items: items.map(describe), next: next === null ? null : format(next) };
  });

  /** Keeps the payload's own text (D11): numbers beyond 2^53 would not survive parsing. */
  const letterText = (letter: Letter): string =>
    `${JSON.stringify(describe(letter)).slice(0, -1)},"payload":${letter.record.payload.toString('utf8')}}`;
  const showing = {
    summary: `Show a dead letter of ${of} with its payload`,
    params: onePath(resource),
    // Describes the shape of the text.
    response: { 200: Type.Unsafe<string>(documents.shown), ...errorAnswers },
  };
  route('GET', pathOfOne(resource), 'read', showing, async ({ params }, reply) => {
    const letter = await service.get(params.fleet_id, params.name, idOf(resource, params));
    return reply.type('application/json').send(letterText(letter));
  });
}

/** Adds the routes that replay and drop one letter or, where their path names none, all. */
function addChanges<Letter extends FailedRecord, Id>(
  app: AdminApp,
  resource: DeadLetterResource<Letter, Id>,
  path: string,
  params: TUnsafe<Path>,
  which: string,
): void {
  const route = routesOf(app);
  const { service, scope, id, texts } = resource;
  const chosenOf = (named: Path): Id | undefined => (id.name in named ? idOf(resource, named) : undefined);
  const replaying = {
    summary: `Replay ${which}`,
    ...(path === pathOfAll(resource) && { description: texts.replayingAll }),
    params,
    response: { 200: replayedDocument, ...errorAnswers },
  };
  route('POST', `${path}/replay`, scope, replaying, async ({ params: named, audited }) => {
    const replayed = await service.replay(named.fleet_id, named.name, chosenOf(named));
    audited.about = { replayed };
    return { replayed };
  });
  const dropping = { summary: `Drop ${which}`, params, response: { 200: droppedDocument, ...errorAnswers } };
  route('DELETE', path, scope, dropping, async ({ params: named, audited }) => {
    const dropped = await service.drop(named.fleet_id, named.name, chosenOf(named));
    audited.about = { dropped };
    return { dropped };
  });
}
