import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { type AdminApp, routeOf } from './admin-app.ts';
import { serializerOf } from './compiled-schemas.ts';
import type { Turn } from './turn.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Digest of a list's query; empty on routes that are not lists. */
    list: string;
  }
}

/** Enough to tell lists apart. It does not prevent forged cursors: routes check positions themselves. */
const digestCharacters = 8;

/** Items of a page that are serialized at once: under a millisecond of this thread. */
const itemsPerTurn = 100;

interface Described {
  properties?: Record<string, unknown>;
}

interface DescribedPage {
  properties?: { items?: { items?: object } };
}

/** Returns the part of a request that has a list's cursor, by its route's schemas; undefined if it is not a list. */
export function cursorPart({ querystring, body, response }: FastifySchema): 'query' | 'body' | undefined {
  const { 200: page } = (response ?? {}) as { 200?: Described };
  if (page?.properties?.next === undefined) return undefined;
  if ((querystring as Described | undefined)?.properties?.after !== undefined) return 'query';
  return (body as Described | undefined)?.properties?.after === undefined ? undefined : 'body';
}

/**
 * Prefixes every cursor with a digest of its list's query (route, fleet, values of filters), and refuses one with
 * another prefix. Routes see only the position after the digest, and return pages, which are serialized here.
 */
export function bindCursors(app: AdminApp): void {
  app.decorateRequest('list', '');
  app.addHook('onRoute', (route: RouteOptions) => {
    const part = cursorPart(route.schema ?? {});
    if (part === undefined) return;
    route.preValidation = [
      async (request: FastifyRequest) => openCursor(request, part),
      ...[route.preValidation ?? []].flat(),
    ];
    const { 200: described } = (route.schema?.response ?? {}) as { 200?: DescribedPage };
    const item = described?.properties?.items?.items;
    const serialize = item && serializerOf(item);
    route.preSerialization = [
      ...[route.preSerialization ?? []].flat(),
      async (request: FastifyRequest, reply: FastifyReply, page: unknown) => {
        const sealed = { ...(page as Page), next: sealCursor(request, (page as Page).next) };
        if (serialize === undefined) return sealed;
        const text = await textOf(sealed, serialize, request.turn);
        reply.serializer(() => text);
        return sealed;
      },
    ];
  });
}

interface Page {
  items: readonly unknown[];
  next: string | null;
}

/** Serializes a page in pieces: a thousand items are many milliseconds of this thread. */
async function textOf(
  { items, next }: Page,
  serialize: (item: unknown) => string,
  turn: Turn,
): Promise<string> {
  const texts: string[] = [];
  for (let start = 0; start < items.length; start += itemsPerTurn) {
    await turn();
    for (const item of items.slice(start, start + itemsPerTurn)) texts.push(serialize(item));
  }
  return `{"items":[${texts.join(',')}],"next":${JSON.stringify(next)}}`;
}

/** Adds the digest to a position; to be called by a route that serializes its page itself. */
export function sealCursor({ list }: FastifyRequest, position: string | null): string | null {
  return position === null ? null : list + position;
}

/** @throws ApiError bad_request for a cursor of another list. */
function openCursor(request: FastifyRequest, part: 'query' | 'body'): void {
  const asked = request[part] as Record<string, unknown> | null | undefined;
  if (typeof asked !== 'object' || asked === null) return;
  const { after, limit: _, ...filter } = asked;
  const { narrowsToFleet = false } = request.routeOptions.config;
  const fleet = narrowsToFleet ? request.principal?.fleetId : undefined;
  const list = JSON.stringify([request.method, routeOf(request), request.params, fleet, filter], sorted);
  request.list = hash('sha256', list, 'base64url').slice(0, digestCharacters);
  if (typeof after !== 'string') return;
  if (after === '') delete asked.after;
  else if (after.startsWith(request.list)) asked.after = after.slice(digestCharacters);
  else {
    const msg = '`after` is not a `next` of this list: it belongs to another list or other filters.';
    throw new ApiError('bad_request', { msg });
  }
}

/** Sorts members by name, so that their order in a filter does not matter. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
