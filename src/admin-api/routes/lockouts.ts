import { type Static, Type } from 'typebox';
import {
  type LockoutDocument,
  liftedDocument,
  lockoutDocument,
  lockoutFilter,
  lockoutSelection,
} from '../../contract/device.ts';
import { errorAnswers, listOf, pageLimit } from '../../contract/document.ts';
import { clientAddressText, parseClientAddress } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import type { Lockout, LockoutFilter, LockoutList } from '../../domain/devices/lockout.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import type { Principal } from '../request/scope.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
  lockouts: LockoutList;
}

/** @throws ApiError bad_request for what is no address; forbidden for another fleet than the token's. */
function filterOf(
  { fleet_id, device_id: deviceId, address }: Omit<Static<typeof lockoutSelection>, 'all'>,
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

const listing = {
  summary: 'List lockouts of this node',
  description:
    'Addresses that are answered 429 for a device, or for claims, after too many wrong credentials. In no particular order.',
  querystring: Type.Object({
    ...lockoutFilter,
    after: Type.String({ default: '', pattern: '^\\d{0,6}$' }),
    limit: pageLimit,
  }),
  response: { 200: listOf(lockoutDocument), ...errorAnswers },
};

const listLockouts =
  ({ lockouts }: Needs): Handler<typeof listing> =>
  async ({ query: { after, limit, ...wanted }, principal }) => {
    const { items, next } = lockouts.list(filterOf(wanted, principal), after, limit);
    return { items: items.map(describe), next };
  };

const lifting = {
  summary: 'Lift lockouts of this node',
  description:
    'Ends the lockouts that match, at once, and forgets the failures that led to them. A token for one fleet lifts only those of its fleet.',
  querystring: lockoutSelection,
  response: { 200: liftedDocument, ...errorAnswers },
};

const liftLockouts =
  ({ lockouts }: Needs): Handler<typeof lifting> =>
  async ({ query: { all, ...wanted }, principal, audited }) => {
    const filter = filterOf(wanted, principal);
    if (Object.keys(filter).length === 0 && all === undefined)
      throw new ApiError('bad_request', { msg: 'Give fleet_id, device_id or address, or all=true.' });
    if (Object.keys(wanted).length > 0 && all !== undefined)
      throw new ApiError('bad_request', { msg: 'Give all=true, or a filter, but not both.' });
    const lifted = lockouts.lift(filter);
    Object.assign(audited.about, wanted, { lifted });
    return { lifted };
  };

/** Adds `/lockouts`: what locks devices out of this node, and lifting it. */
export function addLockoutRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/lockouts', 'read', listing, listLockouts(context), { narrowsToFleet: true });
  route('DELETE', '/lockouts', 'provision', lifting, liftLockouts(context), { narrowsToFleet: true });
}
