import { ApiError } from '../../core/errors.ts';
import type { Scope } from '../../core/scope.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a token must have for this route: a route of `/admin/v1` without one keeps the server from starting. */
    scope?: Scope;
    /** Names no fleet in its path, and answers a token of one fleet with what is of that fleet alone. */
    narrowsToFleet?: boolean;
  }
  interface FastifyRequest {
    /** Who asks; known on every route of `/admin/v1`, and null on the others. */
    principal: Principal | null;
  }
}

/** Who a bearer is. */
export interface Principal {
  kind: 'bootstrap' | 'token';
  /** Null for the bootstrap token. */
  id: string | null;
  name: string;
  scopes: readonly Scope[];
  /** Null: all fleets. */
  fleetId: string | null;
}

export const bootstrapPrincipal: Principal = {
  kind: 'bootstrap',
  id: null,
  name: 'bootstrap token',
  scopes: ['admin'],
  fleetId: null,
};

/**
 * `admin` may do everything; the others imply nothing, so that whoever sends mail need not be able to read what
 * devices have sent. A token of one fleet may go where the path names that fleet, and nowhere else.
 * @throws ApiError forbidden, telling nothing of what there is.
 */
export function checkScope(
  { scopes, fleetId }: Principal,
  route: { scope?: Scope; narrowsToFleet?: boolean },
  path: { fleet_id?: string },
): void {
  const { scope = 'admin', narrowsToFleet = false } = route;
  if (!scopes.includes(scope) && !scopes.includes('admin')) {
    throw new ApiError('forbidden', { msg: `This token lacks the scope ${scope}.` });
  }
  if (fleetId === null || path.fleet_id === fleetId) return;
  if (path.fleet_id === undefined && narrowsToFleet) return;
  throw new ApiError('forbidden', {
    msg:
      path.fleet_id === undefined
        ? 'This token is of one fleet, and this route is of all.'
        : 'This token is of another fleet.',
  });
}
