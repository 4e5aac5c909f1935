import { type Static, Type } from 'typebox';
import { fleetBounds } from '../core/bounds.ts';
import { closedPartial, fleetId, listOf, name, nullable, pageLimit, time, wordOf } from './document.ts';
import { declareRoutes } from './routes/route.ts';

/** Null resets a limit to that of the configuration. */
const limits = {
  mailbox_mails_max: nullable('integer', fleetBounds.mailbox_mails_max),
  mail_bytes_max: nullable('integer', fleetBounds.mail_bytes_max),
  mail_ttl_seconds: nullable('integer', fleetBounds.mail_ttl_seconds),
  mail_requeues_max: nullable('integer', fleetBounds.mail_requeues_max),
  requests_per_second_max: nullable('integer', fleetBounds.requests_per_second_max),
  device_requests_per_second_max: nullable('integer', fleetBounds.device_requests_per_second_max),
  device_bytes_per_second_max: nullable('integer', fleetBounds.device_bytes_per_second_max),
  active_seconds: nullable('integer', fleetBounds.active_seconds),
  log_retention_seconds: nullable('integer', fleetBounds.log_retention_seconds),
  log_bytes_max: nullable('integer', fleetBounds.log_bytes_max),
};
const changeable = { name, ...limits };
const newFleetBody = closedPartial({ fleet_id: fleetId, ...changeable });
export type NewFleetBody = Static<typeof newFleetBody>;
const fleetChangeBody = closedPartial(changeable);
export type FleetChangeBody = Static<typeof fleetChangeBody>;

/** A fleet with its effective limits: its own, or those of the configuration. */
const fleetDocument = Type.Object({
  fleet_id: fleetId,
  name,
  created_at: time,
  deleting_since: nullable('string', {
    description: 'When its deletion began; null unless it is being deleted.',
  }),
  mailbox_mails_max: Type.Integer(),
  mail_bytes_max: nullable('integer', {
    description: 'Its own, or that of all fleets if that is lower. Null: no limit.',
  }),
  mail_ttl_seconds: Type.Integer(),
  mail_requeues_max: nullable('integer', { description: 'Null: mail may be requeued any number of times.' }),
  requests_per_second_max: Type.Integer(),
  device_requests_per_second_max: Type.Integer(),
  device_bytes_per_second_max: Type.Integer(),
  active_seconds: Type.Integer({ description: 'How long a device counts as active after it was seen.' }),
  log_retention_seconds: Type.Integer(),
  log_bytes_max: nullable('integer', { description: 'Null for no limit of its own.' }),
  own: Type.Array(wordOf(Object.keys(limits) as (keyof typeof limits)[]), {
    description: 'The limits that are its own; the others are those of the configuration.',
  }),
});
export type FleetDocument = Static<typeof fleetDocument>;

const fleetCountsDocument = Type.Object({
  devices: Type.Integer(),
  disabled: Type.Integer(),
  connected: Type.Integer({ description: 'Devices with an open event stream.' }),
  active: Type.Integer({ description: 'Devices seen within active_seconds, connected or not.' }),
  stuck: Type.Integer({
    description:
      'Devices whose mailbox has had the same mail at its head for longer than `stuckSeconds`: the list by `waiting_before` has them.',
  }),
  mail_bytes: Type.Integer({
    description: 'Bytes of its mail that waits, queued or delayed: the payloads, and 256 bytes a mail.',
  }),
  counted_at: time,
});
export type FleetCountsDocument = Static<typeof fleetCountsDocument>;

/** `/fleets`, `/fleets/{fleet_id}` and its counts. */
export const fleetRoutes = declareRoutes({
  'GET /fleets': {
    scope: 'read',
    summary: 'List fleets',
    query: Type.Object({ after: Type.String({ default: '', maxLength: 8 }), limit: pageLimit }),
    answers: { 200: listOf(fleetDocument) },
    narrowsToFleet: true,
  },
  'POST /fleets': {
    scope: 'provision',
    summary: 'Create a fleet',
    body: newFleetBody,
    answers: { 201: fleetDocument },
  },
  'GET /fleets/{fleet_id}': {
    scope: 'read',
    summary: 'Show a fleet',
    answers: { 200: fleetDocument },
  },
  'PATCH /fleets/{fleet_id}': {
    scope: 'provision',
    summary: 'Change a fleet',
    description:
      'Changes a fleet. Of its rates, `mail_bytes_max` and `log_bytes_max` a token of that fleet alone may lower each and raise none: 403.',
    body: fleetChangeBody,
    answers: { 200: fleetDocument },
  },
  'DELETE /fleets/{fleet_id}': {
    scope: 'admin',
    summary: 'Delete a fleet',
    description:
      'Deletes a fleet with all that is declared in it, its devices and their mail, for good: from the answer on there is no such fleet for its devices, and the rest is removed in the background. Until it is gone, `deleting_since` is set. Records stay in the log until their retention ends, and its id is taken until then.',
    query: Type.Object({
      name: Type.String({ description: 'Confirmation: the name of the fleet, or its id if it has no name.' }),
    }),
    answers: { 202: fleetDocument },
  },
  'GET /fleets/{fleet_id}/counts': {
    scope: 'read',
    summary: 'Count the devices of a fleet',
    description:
      'Counts the devices of a fleet. `active` and `stuck` were counted at `counted_at`, at most some seconds ago, or ten times as long as counting takes; the others are current.',
    answers: { 200: fleetCountsDocument },
  },
});
