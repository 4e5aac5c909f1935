import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { isExpired } from '../../declarations/tokens.ts';
import type { AdminApp, AdminContext } from '../request/context.ts';
import { bootstrapPrincipal, checkScope, type Principal } from '../request/scope.ts';
import type { OpenRequests } from '../server/open-requests.ts';

/** Lets in, on every route that is added from here on, who bears a token for it. */
export function requireToken(
  app: AdminApp,
  context: Pick<AdminContext, 'tokens' | 'bootstrap'>,
  open: OpenRequests,
): void {
  app.addHook('onRoute', nameScope);
  app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    const [, bearer = ''] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    const { scope } = request.routeOptions.config;
    try {
      request.principal = principalOf(bearer, context);
      checkScope(request.principal, request.routeOptions.config, request.params as { fleet_id?: string });
      const { id: tokenId } = request.principal;
      open.add({ reply, tokenId, mayGoOn: () => isLetIn(bearer, context) });
    } catch (error) {
      const isForbidden = error instanceof ApiError && error.code === 'forbidden';
      const why = isForbidden ? ` error="insufficient_scope", scope="${scope}"` : '';
      reply.header('WWW-Authenticate', `Bearer${why}`);
      throw error;
    }
  });
}

/** A route that nobody has thought of who may use it must not come into service; the document says who may. */
function nameScope(route: RouteOptions): void {
  const { scope } = route.config ?? {};
  if (scope === undefined) throw new Error(`${route.method} ${route.url} names no scope`);
  route.schema = { ...route.schema, security: [{ token: [scope] }] };
}

/** As `principalOf`, of one who is in: nothing is told, and it is no use of the token. */
function isLetIn(bearer: string, { tokens, bootstrap }: Pick<AdminContext, 'tokens' | 'bootstrap'>): boolean {
  const token = tokens.find(bearer);
  return token === undefined ? bootstrap.check(bearer) === 'accepted' : !isExpired(token);
}

/** @throws ApiError invalid_token. */
function principalOf(
  bearer: string,
  { tokens, bootstrap }: Pick<AdminContext, 'tokens' | 'bootstrap'>,
): Principal {
  const token = tokens.find(bearer);
  if (token !== undefined) {
    if (isExpired(token)) throw new ApiError('invalid_token', { msg: 'This token has expired.' });
    tokens.used(token);
    const { id, name, scopes, fleetId } = token;
    return { kind: 'token', id, name, scopes, fleetId };
  }
  const answer = bootstrap.check(bearer);
  if (answer === 'accepted') return bootstrapPrincipal;
  if (answer === 'unknown' && bearer === '') throw new ApiError('invalid_token');
  if (answer === 'unknown')
    throw new ApiError('invalid_token', { msg: 'There is no such token, or not any more.' });
  throw new ApiError('invalid_token', {
    msg: 'The bootstrap token is turned off (bootstrapToken): use an API token, with --token or FLEETPOST_TOKEN.',
  });
}
