import { Type } from 'typebox';
import { errorAnswers, fleetPath, listOf, pageLimit } from '../../contract/document.ts';
import {
  type FleetChangeBody,
  type FleetDocument,
  fleetChangeBody,
  fleetDocument,
  type NewFleetBody,
  newFleetBody,
} from '../../contract/fleet.ts';
import { ApiError } from '../../core/errors.ts';
import { generateFleetId } from '../../core/identity.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { FleetChange, Registry } from '../../declarations/registry.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
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

const listing = {
  summary: 'List fleets',
  querystring: Type.Object({ after: Type.String({ default: '', maxLength: 8 }), limit: pageLimit }),
  response: { 200: listOf(fleetDocument), ...errorAnswers },
};

const listFleets =
  ({ config, registry }: Needs): Handler<typeof listing> =>
  async ({ query: { after, limit }, principal }) => {
    const only = principal?.fleetId ?? undefined;
    const rest = registry
      .snapshots()
      .filter(({ fleet }) => fleet.fleetId > after && (only === undefined || fleet.fleetId === only));
    const page = rest.slice(0, limit).map(({ fleet }) => fleet);
    const next = rest.length > limit ? (page.at(-1)?.fleetId ?? null) : null;
    return { items: page.map((fleet) => describeFleet(fleet, config)), next };
  };

const creation = {
  summary: 'Create a fleet',
  body: newFleetBody,
  response: { 201: fleetDocument, ...errorAnswers },
};

const createFleet =
  ({ config, registry }: Needs): Handler<typeof creation> =>
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

const showing = {
  summary: 'Show a fleet',
  params: fleetPath,
  response: { 200: fleetDocument, ...errorAnswers },
};

const showFleet =
  ({ config, registry }: Needs): Handler<typeof showing> =>
  async ({ params }) =>
    describeFleet(registry.declared(params.fleet_id), config);

const changing = {
  summary: 'Change a fleet',
  params: fleetPath,
  body: fleetChangeBody,
  response: { 200: fleetDocument, ...errorAnswers },
};

const changeFleet =
  ({ config, registry }: Needs): Handler<typeof changing> =>
  async ({ params, body }) =>
    describeFleet(await registry.changeFleet(params.fleet_id, changeOf(body)), config);

const deletion = {
  summary: 'Delete a fleet',
  description:
    'Deletes a fleet with all that is declared in it, its devices and their mail, for good: from the answer on there is no such fleet for its devices, and the rest is removed in the background. Until it is gone, `deleting_since` is set. Records stay in the log until their retention ends, and its id is taken until then.',
  params: fleetPath,
  querystring: Type.Object({
    name: Type.String({ description: 'Confirmation: the name of the fleet, or its id if it has no name.' }),
  }),
  response: { 202: fleetDocument, ...errorAnswers },
};

const deleteFleet =
  ({ config, registry }: Needs): Handler<typeof deletion> =>
  async ({ params, query }, reply) => {
    const { fleetId, name } = registry.declared(params.fleet_id);
    if (query.name !== (name || fleetId)) throw new ApiError('not_confirmed');
    const fleet = await registry.deleteFleet(fleetId);
    reply.code(202);
    return describeFleet(fleet, config);
  };

/** Adds `/fleets` and `/fleets/{fleet_id}`. */
export function addFleetRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/fleets', 'read', listing, listFleets(context), { narrowsToFleet: true });
  route('POST', '/fleets', 'provision', creation, createFleet(context));
  route('GET', '/fleets/:fleet_id', 'read', showing, showFleet(context));
  route('PATCH', '/fleets/:fleet_id', 'provision', changing, changeFleet(context));
  route('DELETE', '/fleets/:fleet_id', 'admin', deletion, deleteFleet(context));
}
