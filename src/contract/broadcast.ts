import { type Static, Type } from 'typebox';
import { schemaNamePattern } from '../core/identity.ts';
import { deviceDocument, deviceFilter, deviceSelector } from './device.ts';
import {
  closedObject,
  deviceId,
  listOf,
  nullable,
  pageLimit,
  repeatedParameter,
  time,
  wordOf,
} from './document.ts';
import { idempotencyHeaders, mailSettings, mailStates, payloadBody } from './mail.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

const target = closedObject(
  { devices: Type.Optional(Type.Array(deviceId, { minItems: 1 })), ...deviceSelector },
  { minProperties: 1, description: 'A list of ids, the filters of a list of devices, or all.' },
);
const newBroadcastBody = closedObject({
  name: Type.String({ pattern: schemaNamePattern.source }),
  payload: Type.Optional(
    Type.Unsafe<Record<string, unknown> | null>({
      type: ['object', 'null'],
      description: 'Delivered byte for byte as in the body. Default: {}.',
    }),
  ),
  to: target,
  ...mailSettings,
  deliver_at: Type.Optional(
    Type.String({ description: 'When to deliver it to the mailboxes: ISO 8601 with a time zone.' }),
  ),
  pause_after: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Pauses once so many devices had their turn, so that you see what they make of it; resume goes on with the others.',
    }),
  ),
});
export type NewBroadcastBody = Static<typeof newBroadcastBody>;

export const broadcastDocument = Type.Object({
  broadcast_id: Type.String(),
  name: Type.String(),
  to: Type.Object({
    devices: Type.Optional(Type.Integer({ description: 'Number of devices in the list.' })),
    all: Type.Optional(Type.Literal(true)),
    ...deviceFilter.properties,
  }),
  payload_bytes: Type.Integer(),
  ttl_seconds: nullable('integer'),
  mailbox_mails_max: nullable('integer'),
  requeues_max: nullable('integer'),
  replace_key: nullable('string'),
  deliver_at: nullable('string'),
  pause_after: nullable('integer'),
  state: wordOf(['running', 'held', 'paused', 'done', 'cancelled'], {
    description: 'Held: it goes on with the release of the held server.',
  }),
  devices: nullable('integer', {
    description: 'Number of target devices, counted at the start; null until known.',
  }),
  queued: Type.Integer(),
  refused: Type.Integer(),
  reasons: Type.Partial(
    Type.Object({
      mailbox_full: Type.Integer(),
      delayed_full: Type.Integer(),
      fleet_mail_full: Type.Integer(),
      device_not_found: Type.Integer(),
      not_stored: Type.Integer(),
    }),
    { description: 'Number of refusals by reason, also of those that are not listed.' },
  ),
  created_at: time,
  ended_at: nullable('string'),
});
export type BroadcastDocument = Static<typeof broadcastDocument>;

/** States of a mail whose receipt may be gone. */
export const broadcastMailStates = [...mailStates, 'unknown'] as const;
const mailState = wordOf([...broadcastMailStates], {
  description: 'Unknown: it went with its device, or its receipt is no longer retained.',
});

/** State of a broadcast's mail on one device. */
const broadcastMailDocument = Type.Object({
  device_id: deviceId,
  mail_id: Type.String(),
  state: mailState,
  fetch_count: Type.Integer(),
  device: Type.Union([
    Type.Pick(deviceDocument, ['name', 'enabled', 'state', 'last_seen']),
    Type.Null({ description: 'It was deleted.' }),
  ]),
  behind: Type.Union(
    [Type.Object({ mail_id: Type.String(), name: Type.String(), fetch_count: Type.Integer() }), Type.Null()],
    { description: 'The mail at the head of the mailbox, while this one waits behind it.' },
  ),
  refused: nullable('string', {
    description:
      'Why the calls of a device are refused that has not been seen since, while the mail waits: as `detail` or `error` of its refusals on this node.',
  }),
});
export type BroadcastMailDocument = Static<typeof broadcastMailDocument>;

const broadcastOutcomesDocument = Type.Object({
  delayed: Type.Integer({ description: 'Waits for its time.' }),
  queued: Type.Integer({ description: 'Waits in the mailbox.' }),
  acked: Type.Integer(),
  rejected: Type.Integer(),
  expired: Type.Integer(),
  withdrawn: Type.Integer(),
  replaced: Type.Integer({ description: 'Was never fetched, and followed by a newer mail of its key.' }),
  over_requeued: Type.Integer(),
  mailbox_full: Type.Integer({ description: 'Was delayed, and found the mailbox full when it was due.' }),
  unknown: Type.Integer({ description: 'Went with its device, or its receipt is no longer retained.' }),
});
export type BroadcastOutcomesDocument = Static<typeof broadcastOutcomesDocument>;

const broadcastRefusalDocument = Type.Object({
  device_id: deviceId,
  name: nullable('string', { description: 'Of the device; null if there is none.' }),
  reason: wordOf(['mailbox_full', 'delayed_full', 'fleet_mail_full', 'device_not_found', 'not_stored']),
});
export type BroadcastRefusalDocument = Static<typeof broadcastRefusalDocument>;

const afterDevice = Type.String({ default: '', pattern: '^[A-Za-z0-9]{0,10}$' });

/** `/fleets/{fleet_id}/broadcasts`: one mail for many devices, delivered as a job. */
export const broadcastRoutes = declareRoutes({
  'POST /fleets/{fleet_id}/broadcasts': {
    scope: 'mail',
    summary: 'Start a broadcast',
    description:
      'Sends a mail to a list of devices, to those that match the filters of a list, or to the whole fleet. A filter is applied to each device when its turn comes; its `state` is that of the time of the request.',
    headers: idempotencyHeaders,
    body: newBroadcastBody,
    answers: { 202: broadcastDocument },
  },
  'GET /fleets/{fleet_id}/broadcasts': {
    scope: 'read',
    summary: 'List broadcasts',
    description: 'Newest first.',
    query: Type.Object({
      after: Type.Optional(Type.String({ pattern: '^[0-9A-Fa-f-]{32,36}$' })),
      limit: pageLimit,
    }),
    answers: { 200: listOf(broadcastDocument) },
  },
  'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}': {
    scope: 'read',
    summary: 'Show a broadcast',
    answers: { 200: broadcastDocument },
  },
  'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/payload': {
    scope: 'read',
    summary: 'Show the payload of a broadcast',
    answers: { 200: payloadBody },
  },
  'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/refusals': {
    scope: 'read',
    summary: 'List the refusals of a broadcast',
    description: 'Devices that did not get the mail, by id, up to broadcastRefusalsMax of them.',
    query: Type.Object({ after: afterDevice, limit: pageLimit }),
    answers: { 200: listOf(broadcastRefusalDocument) },
  },
  'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/mails': {
    scope: 'read',
    summary: 'List the mails of a broadcast',
    description:
      'What became of the mail on each device that got it, by id. Each call looks at a bounded number of mails: a page may have fewer than `limit` and still have a next one.',
    query: Type.Object({
      state: repeatedParameter(mailState, broadcastMailStates.length, 'The mail is in any of these states.'),
      after: afterDevice,
      limit: pageLimit,
    }),
    answers: { 200: listOf(broadcastMailDocument) },
  },
  'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/outcomes': {
    scope: 'read',
    summary: 'Count what became of a broadcast',
    description: 'Counts the mails by state, which takes some seconds for a million devices.',
    answers: { 200: broadcastOutcomesDocument },
  },
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/pause': {
    scope: 'mail',
    summary: 'Pause a broadcast',
    description: 'Nothing more is sent once this is answered, until the broadcast is resumed.',
    body: closedObject({}),
    answers: { 200: broadcastDocument },
  },
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/resume': {
    scope: 'mail',
    summary: 'Resume a broadcast',
    description: 'Continues after the last device that is done.',
    body: closedObject({}),
    answers: { 200: broadcastDocument },
  },
  'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/cancel': {
    scope: 'mail',
    summary: 'Cancel a broadcast',
    description: 'Ends the broadcast for good. Mail already sent stays in the mailboxes.',
    body: closedObject({}),
    answers: { 200: broadcastDocument },
  },
  'DELETE /fleets/{fleet_id}/broadcasts/{broadcast_id}': {
    scope: 'mail',
    summary: 'Delete an ended broadcast',
    description: 'Deletes an ended broadcast with its refusals.',
    answers: { 204: noDocument },
  },
});
