import { type Static, Type } from 'typebox';
import { nullable, time } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

/** Equal refused requests of one device. */
const refusalDocument = Type.Object({
  route: Type.String({ description: 'Method and path, with the name of what is in it as a parameter.' }),
  name: nullable('string', { description: 'The schema or the mail that the path names.' }),
  error: Type.String({ description: 'Code of the error.' }),
  detail: nullable('string', { description: 'What was wrong with the credentials.' }),
  msg: Type.String(),
  path: nullable('string', { description: 'The first part of the body that does not match its schema.' }),
  path_msg: nullable('string'),
  count: Type.Integer(),
  first_at: time,
  last_at: time,
  accepted_at: nullable('string', {
    description:
      'When a request of the same route and name was accepted last; null if none was since the first refusal.',
  }),
});
export type RefusalDocument = Static<typeof refusalDocument>;

/** `…/devices/{device_id}/refusals`. */
export const refusalRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices/{device_id}/refusals': {
    scope: 'read',
    summary: 'List the last refused requests of a device',
    description:
      'What this node has refused to the device since it started, and of mail to it, last one first. Equal refusals are counted; each thread keeps up to 16 different ones of a device, for the 4,096 devices refused last.',
    answers: { 200: Type.Object({ items: Type.Array(refusalDocument) }) },
  },
});
