import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import type { Party } from '../../core/fair-share.ts';
import { sessionToken } from '../../core/identity.ts';
import { isExpired, sessionMs, type Token, type Tokens } from '../../declarations/tokens.ts';
import type { AdminApp } from '../request/admin-app.ts';
import { bootstrapPrincipal, checkScope, type Principal } from '../request/scope.ts';
import { isOfOwnPage } from '../server/host-check.ts';
import type { OpenRequests } from '../server/open-requests.ts';
import { sessionHalves } from './session-cookie.ts';

/** The token in DATA/admin.json, for those who can read the data folder. */
export interface Bootstrap {
  readonly isOn: boolean;
  /** Returns `off` if the bearer is that token but it is turned off. */
  check(bearer: string): 'accepted' | 'off' | 'unknown';
}

/** Who may use the admin API. */
export interface Bearers {
  tokens: Tokens;
  bootstrap: Bootstrap;
}

/** Requires a token with the right scope on every route added from here on. */
export function requireToken(app: AdminApp, context: Bearers, open: OpenRequests): void {
  app.addHook('onRoute', checkScopeDeclared);
  app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    const bearer = bearerOf(request.raw);
    const { scope } = request.routeOptions.config;
    try {
      refuseOtherPages(request.raw);
      request.principal = principalOf(bearer, request.raw, context);
      checkScope(request.principal, request.routeOptions.config, request.params as { fleet_id?: string });
      const { id: tokenId } = request.principal;
      open.add({ reply, tokenId, isAuthorized: () => isAuthorized(bearer, context) });
    } catch (error) {
      const isForbidden = error instanceof ApiError && error.code === 'forbidden';
      const why = isForbidden ? ` error="insufficient_scope", scope="${scope}"` : '';
      reply.header('WWW-Authenticate', `Bearer${why}`);
      throw error;
    }
  });
}

/** The bearer of the Authorization header, or else what both halves of a session make. Empty: none. */
export function bearerOf(request: IncomingMessage): string {
  const { authorization } = request.headers;
  if (authorization !== undefined) return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
  const { cookie, key } = sessionHalves(request);
  return cookie === undefined || key === undefined ? '' : sessionToken({ cookie, key });
}

/**
 * A browser sends the cookie by itself: what changes something by it must come from a page of the console. The key in
 * its header, which no other page has or can send, says that already; this holds even where somebody got it.
 * @throws ApiError host_refused.
 */
function refuseOtherPages(request: IncomingMessage): void {
  const { authorization } = request.headers;
  const isChange = request.method !== 'GET' && request.method !== 'HEAD';
  if (authorization !== undefined || !isChange || isOfOwnPage(request)) return;
  if (sessionHalves(request).cookie === undefined) return;
  throw new ApiError('host_refused', {
    msg: "A session of the console changes things from the console's own page alone: with an API token, send it as a bearer (Authorization).",
  });
}

/** Says who has a part in the admin API by a request: its token, of a fleet or of all; its address without a valid one. */
export function partyOf(request: IncomingMessage, context: Bearers): Party {
  const bearer = bearerOf(request);
  const token = context.tokens.find(bearer);
  if (token !== undefined && !hasEnded(token, context)) {
    return { group: token.fleetId ?? '*', member: token.id };
  }
  if (context.bootstrap.check(bearer) === 'accepted') return { group: '*', member: 'bootstrap' };
  return { group: '', member: request.socket.remoteAddress ?? '' };
}

/** Refuses to add a route without a scope, and puts the scope into the OpenAPI document. */
function checkScopeDeclared(route: RouteOptions): void {
  const { scope } = route.config ?? {};
  if (scope === undefined || scope === 'none') throw new Error(`${route.method} ${route.url} has no scope`);
  route.schema = { ...route.schema, security: [{ token: scope === 'any' ? [] : [scope] }] };
}

/**
 * True if a token still holds, for an open request. It is in use as long: a console that follows Live sends no other
 * request, and would be logged out in the midst of it.
 */
function isAuthorized(bearer: string, context: Bearers): boolean {
  const { tokens, bootstrap } = context;
  const token = tokens.find(bearer);
  if (token === undefined) return bootstrap.check(bearer) === 'accepted';
  if (hasEnded(token, context)) return false;
  tokens.noteUse(token);
  return true;
}

/** True if a token has expired, or is a session of the bootstrap token that is turned off on this node. */
export function hasEnded(token: Token, { bootstrap }: Pick<Bearers, 'bootstrap'>): boolean {
  return isExpired(token) || (token.session?.parentId === null && !bootstrap.isOn);
}

/** @throws ApiError invalid_token. */
function principalOf(bearer: string, request: IncomingMessage, context: Bearers): Principal {
  const { tokens, bootstrap } = context;
  const token = tokens.find(bearer);
  if (token !== undefined) {
    if (hasEnded(token, context)) throw new ApiError('invalid_token', { msg: whyEnded(token) });
    tokens.noteUse(token);
    return tokenPrincipal(token);
  }
  const answer = bootstrap.check(bearer);
  if (answer === 'accepted') return bootstrapPrincipal;
  if (answer === 'unknown') throw unknownBearer(bearer, request, tokens);
  throw new ApiError('invalid_token', {
    msg: 'The bootstrap token is turned off (bootstrapToken): use an API token, with --token or FLEETPOST_TOKEN.',
  });
}

function unknownBearer(bearer: string, request: IncomingMessage, tokens: Tokens): ApiError {
  const refused = (msg: string): ApiError => new ApiError('invalid_token', { msg });
  const ended = tokens.findEndedSession(bearer);
  if (ended !== undefined) return refused(whyEnded(ended));
  const { cookie, key } = sessionHalves(request);
  if (request.headers.authorization === undefined && key !== undefined) {
    return refused(whyUnknown(cookie !== undefined));
  }
  return bearer === '' ? new ApiError('invalid_token') : refused('This token does not exist or was revoked.');
}

/** Says why a token lets nobody in any more: one that is known, or was until lately. */
function whyEnded({ createdAtMs, expiresAtMs, session }: Token): string {
  if (session === null) return 'This token has expired.';
  const nowMs = Date.now();
  if (expiresAtMs !== null && expiresAtMs <= nowMs) {
    return ended(expiresAtMs < createdAtMs + sessionMs ? 'its token has expired' : '12 h after the login');
  }
  if (session.idleAtMs <= nowMs) return ended('an hour without a request');
  return ended('revoked, or 20 later logins with its token');
}

/** Says why a session is not known whose page still has its key. */
function whyUnknown(hasCookie: boolean): string {
  return ended(hasCookie ? 'this server does not know it' : '12 h are over, or its cookie was deleted');
}

function ended(why: string): string {
  return `Your session has ended (${why}).`;
}

/** The principal that a token stands for. */
export function tokenPrincipal({ id, name, scopes, fleetId, session }: Token): Principal {
  return { kind: session === null ? 'token' : 'session', id, name, scopes, fleetId };
}
