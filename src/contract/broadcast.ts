import { type Static, Type } from 'typebox';
import { tagsMax } from '../core/bounds.ts';
import { schemaNamePattern } from '../core/identity.ts';
import { deviceDocument } from './device.ts';
import {
  closedObject,
  deviceId,
  nullable,
  oneOrSeveral,
  pageLimit,
  repeatedParameter,
  tag,
  time,
  wordOf,
} from './document.ts';
import { mailSettings, mailStates } from './mail.ts';

const target = closedObject(
  {
    devices: Type.Optional(Type.Array(deviceId, { minItems: 1 })),
    tag: Type.Optional(oneOrSeveral(tag, tagsMax, 'To the devices that have all of these tags.')),
    all: Type.Optional(Type.Literal(true)),
  },
  { minProperties: 1, maxProperties: 1 },
);
export const newBroadcastBody = closedObject({
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
});
export type NewBroadcastBody = Static<typeof newBroadcastBody>;

export const broadcastDocument = Type.Object({
  broadcast_id: Type.String(),
  name: Type.String(),
  to: Type.Object({
    devices: Type.Optional(Type.Integer({ description: 'Number of devices in the list.' })),
    tag: Type.Optional(Type.Array(Type.String(), { description: 'Devices that have all of these tags.' })),
    all: Type.Optional(Type.Literal(true)),
  }),
  payload_bytes: Type.Integer(),
  ttl_seconds: nullable('integer'),
  mailbox_mails_max: nullable('integer'),
  requeues_max: nullable('integer'),
  deliver_at: nullable('string'),
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
export const broadcastMailDocument = Type.Object({
  device_id: deviceId,
  mail_id: Type.String(),
  state: mailState,
  fetch_count: Type.Integer(),
  device: Type.Union([
    Type.Pick(deviceDocument, ['name', 'enabled', 'state', 'last_seen']),
    Type.Null({ description: 'It was deleted.' }),
  ]),
});
export type BroadcastMailDocument = Static<typeof broadcastMailDocument>;

export const broadcastMailQuery = Type.Object({
  state: repeatedParameter(mailState, broadcastMailStates.length, 'The mail is in any of these states.'),
  after: Type.String({ default: '', pattern: '^[A-Za-z0-9]{0,10}$' }),
  limit: pageLimit,
});

export const broadcastOutcomesDocument = Type.Object({
  delayed: Type.Integer({ description: 'Waits for its time.' }),
  queued: Type.Integer({ description: 'Waits in the mailbox.' }),
  acked: Type.Integer(),
  rejected: Type.Integer(),
  expired: Type.Integer(),
  withdrawn: Type.Integer(),
  over_requeued: Type.Integer(),
  mailbox_full: Type.Integer({ description: 'Was delayed, and found the mailbox full when it was due.' }),
  unknown: Type.Integer({ description: 'Went with its device, or its receipt is no longer retained.' }),
});
export type BroadcastOutcomesDocument = Static<typeof broadcastOutcomesDocument>;

export const broadcastRefusalDocument = Type.Object({
  device_id: deviceId,
  name: nullable('string', { description: 'Of the device; null if there is none.' }),
  reason: wordOf(['mailbox_full', 'delayed_full', 'device_not_found', 'not_stored']),
});
export type BroadcastRefusalDocument = Static<typeof broadcastRefusalDocument>;
