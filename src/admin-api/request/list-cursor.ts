import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { type AdminApp, routeOf } from './context.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Digest of what a list was asked for; empty on routes that are no lists. */
    list: string;
  }
}

/** Enough to tell one list from another. It keeps nobody from making a cursor up: places are checked by themselves. */
const digestCharacters = 8;

interface Described {
  properties?: Record<string, unknown>;
}

/** The part of a request that has the cursor of a list, by the schemas of its route; undefined for what is no list. */
export function cursorPart({ querystring, body, response }: FastifySchema): 'query' | 'body' | undefined {
  const { 200: page } = (response ?? {}) as { 200?: Described };
  if (page?.properties?.next === undefined) return undefined;
  if ((querystring as Described | undefined)?.properties?.after !== undefined) return 'query';
  return (body as Described | undefined)?.properties?.after === undefined ? undefined : 'body';
}

/**
 * Makes every cursor of a list begin with a digest of what the list was asked for (route, fleet, values of filters), and
 * refuses one that begins with another. Routes have to do with the places behind the digest alone.
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
    route.preSerialization = [
      ...[route.preSerialization ?? []].flat(),
      async (request: FastifyRequest, _reply: FastifyReply, page: unknown) => {
        const { next } = page as { next: string | null };
        return { ...(page as object), next: sealCursor(request, next) };
      },
    ];
  });
}

/** For a page that its route writes itself. */
export function sealCursor({ list }: FastifyRequest, place: string | null): string | null {
  return place === null ? null : list + place;
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
    const msg = '`after` is no `next` of this list: it belongs to another one, or to other filters.';
    throw new ApiError('bad_request', { msg });
  }
}

/** Members in order of name: a filter is the same in whatever order it is written. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
