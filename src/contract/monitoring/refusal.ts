import { type Static, Type } from 'typebox';
import { deviceId, nullable, time, wordOf } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

/** Why a device is refused now; the words of the domain. */
export const refusalReasons = [
  'wrong_secret',
  'schema_mismatch',
  'rate_limited',
  'disabled',
  'other',
] as const;
const reason = wordOf(refusalReasons);

/** Equal refused requests of one device. */
const refusalDocument = Type.Object({
  route: Type.String({ description: 'Method and path, with the name of what is in it as a parameter.' }),
  name: nullable('string', { description: 'The schema or the mail that the path names.' }),
  error: Type.String({ description: 'Code of the error.' }),
  detail: nullable('string', { description: 'What was wrong with the credentials.' }),
  msg: Type.String(),
  path: nullable('string', { description: 'The first part of the body that does not match its schema.' }),
  path_msg: nullable('string'),
  value: nullable('string', {
    description:
      'What the last one had there, as JSON; of a text the first 64 characters. Null for an object or a list.',
  }),
  count: Type.Integer(),
  first_at: time,
  last_at: time,
  last_address: nullable('string', { description: 'Where the last one came from, if that is known.' }),
  accepted_at: nullable('string', {
    description:
      'When a request of the same route and name was accepted last, or any, if the credentials were refused; null if none was since the first refusal.',
  }),
});
export type RefusalDocument = Static<typeof refusalDocument>;

/** What a device of a fleet is refused. */
const fleetRefusalDocument = Type.Interface([refusalDocument], {
  device_id: deviceId,
  device_name: Type.String(),
  reason,
  is_now: Type.Boolean({ description: 'False if it was accepted since, or may have been a single mistake.' }),
});
export type FleetRefusalDocument = Static<typeof fleetRefusalDocument>;

const fleetRefusalsDocument = Type.Object({
  items: Type.Array(fleetRefusalDocument, { description: 'The last refusal first.' }),
  devices: Type.Integer({ description: 'Devices that are refused so, also those beyond `limit`.' }),
  devices_now: Type.Integer({ description: 'Those of them that are refused now.' }),
  is_all: Type.Boolean({
    description: 'False if there may be more: 1,000 devices of a fleet are kept, those refused last.',
  }),
});

/** `…/devices/{device_id}/refusals`, and those of all devices of a fleet. */
export const refusalRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/refusals': {
    scope: 'read',
    summary: 'List the devices of a fleet that are refused',
    description:
      'What this node refuses to devices now: what it has refused within the last hour, a single request within ten minutes, and has not accepted since; of requests over a rate, where a tenth of the last minutes was refused. Only of devices that exist. In memory, so from the start of the node on; each node knows of the devices that call it.',
    query: Type.Object({
      of: wordOf(['now', 'hour'], {
        default: 'now',
        description: 'hour: all that was refused within the last hour, whatever was accepted since.',
      }),
      reason: Type.Optional(reason),
      kind: Type.Optional(
        wordOf(['datapoint', 'message'], { description: 'Only what was refused of this kind.' }),
      ),
      name: Type.Optional(Type.String({ maxLength: 255, description: 'Only what this schema refused.' })),
      limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
    }),
    answers: { 200: fleetRefusalsDocument },
  },
  'GET /fleets/{fleet_id}/devices/{device_id}/refusals': {
    scope: 'read',
    summary: 'List the last refused requests of a device',
    description:
      'What this node has refused to the device since it started, and of mail to it, last one first. Equal refusals are counted; each thread keeps up to 16 different ones of a device, for the 4,096 devices refused last, at most 1,000 of them of one fleet.',
    answers: { 200: Type.Object({ items: Type.Array(refusalDocument) }) },
  },
});
