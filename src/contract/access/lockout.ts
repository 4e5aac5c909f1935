import { type Static, Type } from 'typebox';
import { deviceId, fleetId, listOf, nullable, pageLimit, time } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

/** A lockout from a device, whose page lists it. */
export const deviceLockoutDocument = Type.Object({
  address: Type.String({ description: 'An IPv4 address, or the /64 of an IPv6 one.' }),
  until: time,
});

const lockoutDocument = Type.Interface([deviceLockoutDocument], {
  fleet_id: nullable('string', { description: 'Null: claim tokens of any fleet.' }),
  device_id: nullable('string', { description: 'Null: from claiming, with wrong tokens.' }),
});
export type LockoutDocument = Static<typeof lockoutDocument>;

/** All parameters must match. */
const lockoutFilter = {
  fleet_id: Type.Optional(fleetId),
  device_id: Type.Optional(deviceId),
  address: Type.Optional(
    Type.String({ maxLength: 64, description: 'An IP address, or the /64 of an IPv6 one.' }),
  ),
};
const lockoutSelection = Type.Object({
  ...lockoutFilter,
  all: Type.Optional(Type.Literal('true', { description: 'Every lockout, with no filter.' })),
});
export type LockoutSelection = Static<typeof lockoutSelection>;

const liftedDocument = Type.Object({ lifted: Type.Integer() });

/** `/lockouts`: what locks devices out of this node, and lifting it. */
export const lockoutRoutes = declareRoutes({
  'GET /lockouts': {
    scope: 'read',
    summary: 'List lockouts of this node',
    description:
      'Addresses that are answered 429 for a device, or for claims, after too many wrong credentials. In no particular order.',
    query: Type.Object({
      ...lockoutFilter,
      after: Type.String({ default: '', pattern: '^\\d{0,6}$' }),
      limit: pageLimit,
    }),
    answers: { 200: listOf(lockoutDocument) },
    narrowsToFleet: true,
  },
  'DELETE /lockouts': {
    scope: 'provision',
    summary: 'Lift lockouts of this node',
    description:
      'Ends the lockouts that match, at once, and forgets the failures that led to them. A token for one fleet lifts only those of its fleet.',
    query: lockoutSelection,
    answers: { 200: liftedDocument },
    narrowsToFleet: true,
  },
});
