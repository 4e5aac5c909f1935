import type { FleetChangeBody, FleetDocument, fleetRoutes, NewFleetBody } from '../../contract/fleet.ts';
import { ApiError } from '../../core/errors.ts';
import { generateFleetId } from '../../core/identity.ts';
import { type Fleet, lowestLimit } from '../../declarations/fleet.ts';
import type { FleetChange, Registry } from '../../declarations/registry.ts';
import type { AdminApiConfig } from '../config.ts';
import type { DeviceCounts } from '../monitoring/device-counts.ts';
import type { HandlerOf, Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import { type CountParts, countFleetDevices } from './fleet-counts.ts';

interface Parts {
  config: AdminApiConfig;
  registry: Registry;
}

/** Describes a fleet with its effective limits: its own, or those of the configuration. */
function describeFleet(fleet: Fleet, config: AdminApiConfig): FleetDocument {
  const { current } = config.settings;
  return {
    fleet_id: fleet.fleetId,
    name: fleet.name,
    created_at: timeTextOf(fleet.createdAtMs),
    deleting_since: timeTextOf(fleet.deletingSinceMs),
    mailbox_mails_max: fleet.mailboxMailsMax ?? current.mailboxMailsMax,
    mail_bytes_max: lowestLimit(fleet.mailBytesMax, current.mailBytesPerFleetMax) ?? null,
    mail_ttl_seconds: fleet.mailTtlSeconds ?? current.mailTtlSeconds,
    mail_requeues_max: fleet.mailRequeuesMax ?? null,
    requests_per_second_max: fleet.requestsPerSecondMax ?? current.fleetRequestsPerSecondMax,
    device_requests_per_second_max: fleet.deviceRequestsPerSecondMax ?? current.deviceRequestsPerSecondMax,
    device_bytes_per_second_max: fleet.deviceBytesPerSecondMax ?? current.deviceBytesPerSecondMax,
    active_seconds: fleet.activeSeconds ?? current.activeSeconds,
    log_retention_seconds: fleet.logRetentionSeconds ?? current.logRetentionSeconds,
    log_bytes_max: fleet.logBytesMax ?? null,
    own: limitNames.filter((key) => (fleet[fieldsOf[key]] ?? null) !== null),
  };
}

/** Members of a fleet in the registry by their names in a document. */
const fieldsOf = {
  name: 'name',
  mailbox_mails_max: 'mailboxMailsMax',
  mail_bytes_max: 'mailBytesMax',
  mail_ttl_seconds: 'mailTtlSeconds',
  mail_requeues_max: 'mailRequeuesMax',
  requests_per_second_max: 'requestsPerSecondMax',
  device_requests_per_second_max: 'deviceRequestsPerSecondMax',
  device_bytes_per_second_max: 'deviceBytesPerSecondMax',
  active_seconds: 'activeSeconds',
  log_retention_seconds: 'logRetentionSeconds',
  log_bytes_max: 'logBytesMax',
} as const satisfies Record<keyof FleetChangeBody, keyof FleetChange>;
const limitNames = (Object.keys(fieldsOf) as (keyof typeof fieldsOf)[]).filter((key) => key !== 'name');

/** Omits absent fields, because the registry takes a present one, even if undefined, as a change. */
function changeOf(body: FleetChangeBody): FleetChange {
  const fields = Object.entries(fieldsOf).map(([key, field]) => [field, body[key as keyof FleetChangeBody]]);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Omits null limits: a new fleet has none to reset. */
function limitsOf(body: NewFleetBody): Partial<Fleet> {
  return Object.fromEntries(Object.entries(changeOf(body)).filter(([, value]) => value !== null));
}

/** Limits that keep a fleet from what the others need; 0 and null are none. */
const shieldingLimits = [
  'requests_per_second_max',
  'device_requests_per_second_max',
  'device_bytes_per_second_max',
  'mail_bytes_max',
  'log_bytes_max',
] as const;

/**
 * What bounds a fleet is set by whoever has all fleets: its own tokens may lower it, and nothing else.
 * @throws ApiError forbidden
 */
function refuseRaised(fleet: Fleet, body: FleetChangeBody, config: AdminApiConfig): void {
  const { fleetId, name, createdAtMs } = fleet;
  const now = describeFleet(fleet, config);
  const reset = describeFleet({ fleetId, name, createdAtMs }, config);
  for (const key of shieldingLimits) {
    const wanted = body[key] === null ? reset[key] : body[key];
    if (
      wanted === undefined ||
      (wanted || Number.POSITIVE_INFINITY) <= (now[key] || Number.POSITIVE_INFINITY)
    ) {
      continue;
    }
    throw new ApiError('forbidden', {
      msg: `A token of one fleet can only lower ${key}, which is ${now[key]}: use a token for all fleets.`,
    });
  }
}

type Routes = typeof fleetRoutes;

const listFleets =
  ({ config, registry }: Parts): HandlerOf<Routes, 'GET /fleets'> =>
  async ({ query: { after, limit }, principal }) => {
    const only = principal?.fleetId ?? undefined;
    const rest = registry
      .snapshots()
      .filter(({ fleet }) => fleet.fleetId > after && (only === undefined || fleet.fleetId === only));
    const page = rest.slice(0, limit).map(({ fleet }) => fleet);
    const next = rest.length > limit ? (page.at(-1)?.fleetId ?? null) : null;
    return { items: page.map((fleet) => describeFleet(fleet, config)), next };
  };

const createFleet =
  ({ config, registry }: Parts): HandlerOf<Routes, 'POST /fleets'> =>
  async ({ body, audited }, reply) => {
    const id = body.fleet_id ?? generateFleetId();
    audited.about.fleet_id = id;
    await registry.createFleet({
      fleetId: id,
      name: '',
      createdAtMs: Date.now(),
      ...limitsOf(body),
    });
    reply.code(201);
    return describeFleet(registry.fleet(id).fleet, config);
  };

const deleteFleet =
  ({ config, registry }: Parts): HandlerOf<Routes, 'DELETE /fleets/{fleet_id}'> =>
  async ({ params, query }, reply) => {
    const { fleetId, name } = registry.declared(params.fleet_id);
    if (query.name !== (name || fleetId)) throw new ApiError('not_confirmed');
    const fleet = await registry.deleteFleet(fleetId);
    reply.code(202);
    return describeFleet(fleet, config);
  };

/** Handles `/fleets` and `/fleets/{fleet_id}`, and counts its devices. */
export function fleetHandlers(parts: Parts & CountParts, counts: DeviceCounts): Handlers<Routes> {
  const { config, registry } = parts;
  return {
    'GET /fleets': listFleets(parts),
    'POST /fleets': createFleet(parts),
    'GET /fleets/{fleet_id}': async ({ params }) => describeFleet(registry.declared(params.fleet_id), config),
    'PATCH /fleets/{fleet_id}': async ({ params, body, principal }) => {
      const { fleet } = registry.fleet(params.fleet_id);
      if (principal?.fleetId) refuseRaised(fleet, body, config);
      return describeFleet(await registry.changeFleet(fleet.fleetId, changeOf(body)), config);
    },
    'DELETE /fleets/{fleet_id}': deleteFleet(parts),
    'GET /fleets/{fleet_id}/counts': countFleetDevices(parts, counts),
  };
}
