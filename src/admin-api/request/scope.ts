import type { RouteSettings } from '../../contract/routes/route.ts';
import { ApiError } from '../../core/errors.ts';
import type { Scope } from '../../core/scope.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated client on every route of `/admin/v1`; null on the others. */
    principal: Principal | null;
  }
}

/** The bearer of a token. */
export interface Principal {
  kind: 'bootstrap' | 'token' | 'session';
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
 * Checks a token against a route. `admin` may do everything; other scopes imply nothing, so that a sender of mail need
 * not be able to read what devices have sent. A token for one fleet is valid only where the path names that fleet.
 * @throws ApiError forbidden, revealing nothing about what exists.
 */
export function checkScope(
  { scopes, fleetId }: Principal,
  route: Partial<Pick<RouteSettings, 'scope' | 'narrowsToFleet'>>,
  path: { fleet_id?: string },
): void {
  const { scope = 'admin', narrowsToFleet = false } = route;
  if (scope === 'any' || scope === 'none') return;
  if (!scopes.includes(scope) && !scopes.includes('admin')) {
    throw new ApiError('forbidden', { msg: `This token lacks the scope ${scope}.` });
  }
  if (fleetId === null || path.fleet_id === fleetId) return;
  if (path.fleet_id === undefined && narrowsToFleet) return;
  throw new ApiError('forbidden', {
    msg:
      path.fleet_id === undefined
        ? 'This token is for one fleet, and this route is for all.'
        : 'This token is for another fleet.',
  });
}
