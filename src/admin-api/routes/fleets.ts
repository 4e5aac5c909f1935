import { type Static, Type } from 'typebox';
import { generateFleetId } from '../../core/identity.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { FleetChange } from '../../declarations/registry.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import {
  describeFleet,
  errorAnswers,
  fleetDocument,
  fleetId,
  fleetLimits,
  fleetPath,
  listOf,
  name,
  pageLimit,
} from '../request/documents.ts';

const changeable = { name, ...fleetLimits };
const newFleet = Type.Partial(Type.Object({ fleet_id: fleetId, ...changeable }), {
  additionalProperties: false,
});
const fleetChange = Type.Partial(Type.Object(changeable), { additionalProperties: false });

/** Omits absent fields, because the registry takes a present one, even if undefined, as a change. */
function changeOf(body: Static<typeof fleetChange>): FleetChange {
  const fields: [keyof FleetChange, string | number | null | undefined][] = [
    ['name', body.name],
    ['mailboxMailsMax', body.mailbox_mails_max],
    ['mailTtlSeconds', body.mail_ttl_seconds],
    ['mailRequeuesMax', body.mail_requeues_max],
    ['requestsPerSecondMax', body.requests_per_second_max],
    ['deviceRequestsPerSecondMax', body.device_requests_per_second_max],
    ['deviceBytesPerSecondMax', body.device_bytes_per_second_max],
    ['activeSeconds', body.active_seconds],
    ['logRetentionSeconds', body.log_retention_seconds],
    ['logBytesMax', body.log_bytes_max],
  ];
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Omits null limits: a new fleet has none to reset. */
function limitsOf(body: Static<typeof newFleet>): Partial<Fleet> {
  return Object.fromEntries(Object.entries(changeOf(body)).filter(([, value]) => value !== null));
}

const listing = {
  summary: 'List fleets',
  querystring: Type.Object({ after: Type.String({ default: '', maxLength: 8 }), limit: pageLimit }),
  response: { 200: listOf(fleetDocument), ...errorAnswers },
};

const listFleets =
  ({ config, registry }: AdminContext): Handler<typeof listing> =>
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
  body: newFleet,
  response: { 201: fleetDocument, ...errorAnswers },
};

const createFleet =
  ({ config, registry }: AdminContext): Handler<typeof creation> =>
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
  ({ config, registry }: AdminContext): Handler<typeof showing> =>
  async ({ params }) =>
    describeFleet(registry.fleet(params.fleet_id).fleet, config);

const changing = {
  summary: 'Change a fleet',
  params: fleetPath,
  body: fleetChange,
  response: { 200: fleetDocument, ...errorAnswers },
};

const changeFleet =
  ({ config, registry }: AdminContext): Handler<typeof changing> =>
  async ({ params, body }) =>
    describeFleet(await registry.changeFleet(params.fleet_id, changeOf(body)), config);

/** Adds `/fleets` and `/fleets/{fleet_id}`. */
export function addFleetRoutes(app: AdminApp, context: AdminContext): void {
  app.get(
    '/fleets',
    { config: { scope: 'read', narrowsToFleet: true }, schema: listing },
    listFleets(context),
  );
  app.post('/fleets', { config: { scope: 'provision' }, schema: creation }, createFleet(context));
  app.get('/fleets/:fleet_id', { config: { scope: 'read' }, schema: showing }, showFleet(context));
  app.patch('/fleets/:fleet_id', { config: { scope: 'provision' }, schema: changing }, changeFleet(context));
}
