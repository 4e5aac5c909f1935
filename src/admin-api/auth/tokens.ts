import { type Static, Type } from 'typebox';
import { scopes } from '../../core/scope.ts';
import { isExpired, type Token, type Tokens } from '../../declarations/tokens.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { errorAnswers, fleetId, listOf, name, nullable, pageLimit, time } from '../request/documents.ts';
import { expiresAt, expiryOf } from '../request/times.ts';
import type { OpenRequests } from '../server/open-requests.ts';

const tokenDocument = Type.Object({
  token_id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(Type.Enum([...scopes])),
  fleet_id: nullable('string', { description: 'The only fleet it is valid for; null for all.' }),
  created_at: time,
  expires_at: nullable('string'),
  expired: Type.Boolean(),
  last_used_at: nullable('string', { description: 'Since the server started.' }),
});
const createdToken = Type.Interface([tokenDocument], {
  token: Type.String({ description: 'Shown once.' }),
});

const newToken = Type.Object(
  {
    name: Type.String({ ...name, minLength: 1, description: 'Who or what uses it.' }),
    // With a type, the validator checks uniqueness by hash instead of comparing all pairs.
    scopes: Type.Array(Type.Enum([...scopes], { type: 'string' }), { minItems: 1, uniqueItems: true }),
    fleet_id: Type.Optional(
      Type.Unsafe<string | null>({
        anyOf: [fleetId, { type: 'null' }],
        description: 'Absent or null: all fleets.',
      }),
    ),
    expires_at: expiresAt,
  },
  { additionalProperties: false },
);

function describe(tokens: Tokens, token: Token): Static<typeof tokenDocument> {
  const lastUsedMs = tokens.lastUsedMs(token);
  return {
    token_id: token.id,
    name: token.name,
    scopes: [...token.scopes],
    fleet_id: token.fleetId,
    created_at: new Date(token.createdAtMs).toISOString(),
    expires_at: token.expiresAtMs === null ? null : new Date(token.expiresAtMs).toISOString(),
    expired: isExpired(token),
    last_used_at: lastUsedMs === undefined ? null : new Date(lastUsedMs).toISOString(),
  };
}

const listing = {
  summary: 'List API tokens',
  querystring: Type.Object({ after: Type.String({ default: '', maxLength: 36 }), limit: pageLimit }),
  response: { 200: listOf(tokenDocument), ...errorAnswers },
};

const listTokens =
  ({ tokens }: AdminContext): Handler<typeof listing> =>
  async ({ query: { after, limit } }) => {
    const rest = tokens.list().filter(({ id }) => id > after);
    const items = rest.slice(0, limit).map((token) => describe(tokens, token));
    return { items, next: rest.length > limit ? (items.at(-1)?.token_id ?? null) : null };
  };

const creation = {
  summary: 'Create an API token',
  description: 'Creates an API token. Its text is shown only once and not stored.',
  body: newToken,
  response: { 201: createdToken, ...errorAnswers },
};

const createToken =
  ({ registry, tokens }: AdminContext): Handler<typeof creation> =>
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
  description: 'Revokes an API token. From the answer on, it is refused, and its open requests are cut off.',
  params: Type.Object({ token_id: Type.String() }),
  response: { 204: Type.Null(), ...errorAnswers },
};

const revokeToken =
  ({ tokens }: AdminContext, open: OpenRequests): Handler<typeof revocation> =>
  async ({ params }, reply) => {
    await tokens.revoke(params.token_id);
    open.cut(params.token_id, reply);
    return reply.code(204).send(null);
  };

/** `/tokens`: who may use the admin API. */
export function addTokenRoutes(app: AdminApp, context: AdminContext, open: OpenRequests): void {
  app.get('/tokens', { config: { scope: 'admin' }, schema: listing }, listTokens(context));
  app.post('/tokens', { config: { scope: 'admin' }, schema: creation }, createToken(context));
  app.delete(
    '/tokens/:token_id',
    { config: { scope: 'admin' }, schema: revocation },
    revokeToken(context, open),
  );
}
