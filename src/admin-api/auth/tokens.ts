import { Type } from 'typebox';
import {
  createdTokenDocument,
  newTokenBody,
  selfDocument,
  type TokenDocument,
  tokenDocument,
} from '../../contract/access/token.ts';
import { errorAnswers, listOf, pageLimit } from '../../contract/document.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import { isExpired, type Token, type Tokens } from '../../declarations/tokens.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { expiryOf, timeTextOf } from '../request/times.ts';
import type { OpenRequests } from '../server/open-requests.ts';

interface Needs {
  registry: Registry;
  tokens: Tokens;
}

function describe(tokens: Tokens, token: Token): TokenDocument {
  const lastUsedMs = tokens.lastUsedMs(token);
  return {
    token_id: token.id,
    kind: token.session === null ? 'token' : 'session',
    name: token.name,
    scopes: [...token.scopes],
    fleet_id: token.fleetId,
    created_at: timeTextOf(token.createdAtMs),
    expires_at: timeTextOf(token.expiresAtMs),
    idle_at: timeTextOf(token.session?.idleAtMs),
    parent_id: token.session?.parentId ?? null,
    expired: isExpired(token),
    last_used_at: timeTextOf(lastUsedMs),
  };
}

const listing = {
  summary: 'List API tokens and sessions of the console',
  querystring: Type.Object({ after: Type.String({ default: '', maxLength: 36 }), limit: pageLimit }),
  response: { 200: listOf(tokenDocument), ...errorAnswers },
};

const listTokens =
  ({ tokens }: Needs): Handler<typeof listing> =>
  async ({ query: { after, limit } }) => {
    const rest = tokens.list().filter(({ id }) => id > after);
    const items = rest.slice(0, limit).map((token) => describe(tokens, token));
    return { items, next: rest.length > limit ? (items.at(-1)?.token_id ?? null) : null };
  };

const creation = {
  summary: 'Create an API token',
  description: 'Creates an API token. Its text is shown only once and not stored.',
  body: newTokenBody,
  response: { 201: createdTokenDocument, ...errorAnswers },
};

const createToken =
  ({ registry, tokens }: Needs): Handler<typeof creation> =>
  async ({ body, audited }, reply) => {
    const fleetId = body.fleet_id ?? null;
    if (fleetId !== null) registry.fleet(fleetId);
    const { token, secret } = await tokens.create({
      name: body.name,
      scopes: body.scopes,
      fleetId,
      expiresAtMs: expiryOf(body.expires_at),
    });
    // Not as fleet_id: the entry belongs to the server, so tokens for one fleet must not read it.
    audited.about = {
      token_id: token.id,
      scopes: token.scopes.join(','),
      token_fleet: fleetId ?? 'all',
      expires_at: body.expires_at ?? 'never',
    };
    reply.code(201);
    return { ...describe(tokens, token), token: secret };
  };

const revocation = {
  summary: 'Revoke an API token',
  description:
    'Revokes an API token and its sessions of the console, or one session. From the answer on, it is refused, and its open requests are cut off.',
  params: Type.Object({ token_id: Type.String() }),
  response: { 204: Type.Null(), ...errorAnswers },
};

const revokeToken =
  ({ tokens }: Needs, open: OpenRequests): Handler<typeof revocation> =>
  async ({ params }, reply) => {
    for (const id of await tokens.revoke(params.token_id)) open.cut(id, reply);
    return reply.code(204).send(null);
  };

const self = {
  summary: 'Show the token of this request',
  response: { 200: selfDocument, ...errorAnswers },
};

const showSelf =
  ({ tokens }: Needs): Handler<typeof self> =>
  async ({ principal }) => {
    if (principal === null) throw new Error('this route needs a token');
    const { kind, id, name, scopes, fleetId } = principal;
    const token = id === null ? undefined : tokens.byId(id);
    return {
      kind,
      token_id: id,
      name,
      scopes: [...scopes],
      fleet_id: fleetId,
      expires_at: timeTextOf(token?.expiresAtMs),
      idle_at: timeTextOf(token?.session?.idleAtMs),
    };
  };

const ending = {
  summary: 'End the session of the console that makes this request',
  response: { 204: Type.Null(), ...errorAnswers },
};

const endSession =
  ({ tokens }: Needs, open: OpenRequests): Handler<typeof ending> =>
  async ({ principal }, reply) => {
    if (principal?.kind !== 'session' || principal.id === null) {
      throw new ApiError('bad_request', { msg: 'Only a session of the console can end itself.' });
    }
    for (const id of await tokens.revoke(principal.id)) open.cut(id, reply);
    return reply.code(204).send(null);
  };

/** `/tokens`: who may use the admin API. */
export function addTokenRoutes(app: AdminApp, context: Needs, open: OpenRequests): void {
  const route = routesOf(app);
  route('GET', '/self', 'any', self, showSelf(context));
  route('DELETE', '/self', 'any', ending, endSession(context, open));
  route('GET', '/tokens', 'admin', listing, listTokens(context));
  route('POST', '/tokens', 'admin', creation, createToken(context));
  route('DELETE', '/tokens/:token_id', 'admin', revocation, revokeToken(context, open));
}
