import type { TokenDocument, tokenRoutes } from '../../contract/access/token.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import { isExpired, type Token, type Tokens } from '../../declarations/tokens.ts';
import { clearCookie } from '../auth/session-cookie.ts';
import type { Handlers } from '../request/routes.ts';
import { expiryOf, timeTextOf } from '../request/times.ts';
import type { OpenRequests } from '../server/open-requests.ts';

interface Parts {
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
    address: token.session?.address ?? null,
    browser: token.session?.browser ?? null,
  };
}

/** Handles `/self` and `/tokens`. */
export function tokenHandlers({ registry, tokens }: Parts, open: OpenRequests): Handlers<typeof tokenRoutes> {
  return {
    'GET /self': async ({ principal }) => {
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
    },
    'DELETE /self': async ({ principal, raw }, reply) => {
      if (principal?.kind !== 'session' || principal.id === null) {
        throw new ApiError('bad_request', { msg: 'Only a session of the console can end itself.' });
      }
      for (const id of await tokens.revoke(principal.id)) open.cut(id, reply);
      return reply.code(204).header('Set-Cookie', clearCookie(raw)).send(null);
    },
    'GET /tokens': async ({ query: { after, limit } }) => {
      const rest = tokens.list().filter(({ id }) => id > after);
      const items = rest.slice(0, limit).map((token) => describe(tokens, token));
      return { items, next: rest.length > limit ? (items.at(-1)?.token_id ?? null) : null };
    },
    'POST /tokens': async ({ body, audited }, reply) => {
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
        name: token.name,
        scopes: token.scopes.join(','),
        token_fleet: fleetId ?? 'all',
        expires_at: body.expires_at ?? 'never',
      };
      reply.code(201);
      return { ...describe(tokens, token), token: secret };
    },
    'DELETE /tokens/{token_id}': async ({ params, audited }, reply) => {
      const name = tokens.byId(params.token_id)?.name;
      if (name !== undefined) audited.about = { name };
      for (const id of await tokens.revoke(params.token_id)) open.cut(id, reply);
      return reply.code(204).send(null);
    },
  };
}
