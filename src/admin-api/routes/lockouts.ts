import type { LockoutDocument, LockoutSelection, lockoutRoutes } from '../../contract/access/lockout.ts';
import { clientAddressText, parseClientAddress } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import type { Lockout, LockoutFilter, LockoutList } from '../../domain/devices/lockout.ts';
import type { Handlers } from '../request/routes.ts';
import type { Principal } from '../request/scope.ts';
import { timeTextOf } from '../request/times.ts';

/** @throws ApiError bad_request for what is no address; forbidden for another fleet than the token's. */
function filterOf(
  { fleet_id, device_id: deviceId, address }: Omit<LockoutSelection, 'all'>,
  principal: Principal | null,
): LockoutFilter {
  const fleetId = principal?.fleetId ?? fleet_id;
  if (fleet_id !== undefined && fleet_id !== fleetId)
    throw new ApiError('forbidden', { msg: 'This token is for another fleet.' });
  const client = address === undefined ? undefined : parseClientAddress(address);
  if (address !== undefined && client === undefined)
    throw new ApiError('bad_request', {
      msg: 'address is an IPv4 or IPv6 address, or the /64 of an IPv6 one.',
    });
  return {
    ...(fleetId !== undefined && { fleetId }),
    ...(deviceId !== undefined && { deviceId }),
    ...(client !== undefined && { address: client }),
  };
}

function describe({ fleetId, deviceId, address, untilMs }: Lockout): LockoutDocument {
  return {
    fleet_id: fleetId ?? null,
    device_id: deviceId ?? null,
    address: clientAddressText(address),
    until: timeTextOf(untilMs),
  };
}

/** Handles `/lockouts`. */
export function lockoutHandlers({ lockouts }: { lockouts: LockoutList }): Handlers<typeof lockoutRoutes> {
  return {
    'GET /lockouts': async ({ query: { after, limit, ...wanted }, principal }) => {
      const { items, next } = lockouts.list(filterOf(wanted, principal), after, limit);
      return { items: items.map(describe), next };
    },
    'DELETE /lockouts': async ({ query: { all, ...wanted }, principal, audited }) => {
      const filter = filterOf(wanted, principal);
      if (Object.keys(filter).length === 0 && all === undefined)
        throw new ApiError('bad_request', { msg: 'Give fleet_id, device_id or address, or all=true.' });
      if (Object.keys(wanted).length > 0 && all !== undefined)
        throw new ApiError('bad_request', { msg: 'Give all=true, or a filter, but not both.' });
      const lifted = lockouts.lift(filter);
      Object.assign(audited.about, wanted, { lifted });
      return { lifted };
    },
  };
}
