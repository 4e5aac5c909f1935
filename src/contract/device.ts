import { type Static, Type } from 'typebox';
import { tagsMax } from '../core/bounds.ts';
import { deviceSecretPattern } from '../core/identity.ts';
import {
  closedObject,
  closedPartial,
  deviceId,
  fleetId,
  name,
  nullable,
  oneOrSeveral,
  repeatedParameter,
  tag,
  tags,
  time,
  timeText,
  wordOf,
} from './document.ts';

/** Connection states; the first that applies. */
const states = ['connected', 'active', 'offline'] as const;
export type DeviceState = (typeof states)[number];

export const deviceDocument = Type.Object({
  fleet_id: fleetId,
  device_id: deviceId,
  name,
  tags,
  enabled: Type.Boolean(),
  created_at: time,
  old_secret_until: nullable('string', {
    description: 'When the old secret expires, while it is still valid beside the new one.',
  }),
  state: wordOf(states, {
    description: 'connected: an event stream is open; active: seen within active_seconds; else offline.',
  }),
  last_seen: nullable('string'),
  last_address: nullable('string', {
    description: 'Address of the client, or of the load balancer in front.',
  }),
  mailbox_size: Type.Integer(),
  waiting_since: nullable('string', {
    description:
      'Since when the mail at the head of the mailbox is there; null without mail. Delayed mail does not wait.',
  }),
});
export type DeviceDocument = Static<typeof deviceDocument>;

/** A lockout from a device, whose page lists it. */
export const deviceLockoutDocument = Type.Object({
  address: Type.String({ description: 'An IPv4 address, or the /64 of an IPv6 one.' }),
  until: time,
});

/** A device with what only its own page reads. */
export const shownDeviceDocument = Type.Interface([deviceDocument], {
  delayed_mails: Type.Integer(),
  next_delivery_at: nullable('string', { description: 'When the next delayed mail is due.' }),
  lockouts: Type.Array(deviceLockoutDocument, {
    description: 'Addresses locked out from it on this node, at most 20 of them: GET /lockouts has all.',
  }),
});
export type ShownDeviceDocument = Static<typeof shownDeviceDocument>;

/** The only documents with a secret, shown once, when the secret is generated. */
const secretDocument = Type.Object({
  fleet_id: fleetId,
  device_id: deviceId,
  device_secret: Type.String({ pattern: deviceSecretPattern.source }),
});
export const createdDeviceDocument = Type.Interface(
  [secretDocument],
  Type.Pick(deviceDocument, ['name', 'tags', 'enabled', 'created_at']).properties,
);
export type CreatedDeviceDocument = Static<typeof createdDeviceDocument>;
export const rotatedSecretDocument = Type.Interface([secretDocument], {
  old_secret_until: nullable('string'),
});
export type RotatedSecretDocument = Static<typeof rotatedSecretDocument>;

export const newDeviceBody = closedPartial({ device_id: deviceId, name, tags });
export const deviceChangeBody = closedPartial({ enabled: Type.Boolean(), name, tags });
export type DeviceChangeBody = Static<typeof deviceChangeBody>;

/** Filter of a fleet's devices; all parameters must match. */
export const deviceFilter = Type.Object({
  tag: repeatedParameter(tag, tagsMax, 'The device has all of these tags.'),
  id_prefix: Type.Optional(
    Type.String({ pattern: '^[A-Za-z0-9]{0,10}$', description: 'The id of the device begins with this.' }),
  ),
  name_prefix: Type.Optional(
    Type.String({ ...name, description: 'The name of the device begins with this, in any letter case.' }),
  ),
  enabled: Type.Optional(Type.Boolean()),
  state: Type.Optional(wordOf(states)),
  seen_after: Type.Optional(timeText('Last seen at that time or later.')),
  seen_before: Type.Optional(timeText('Last seen before that time, or never.')),
  waiting_before: Type.Optional(
    timeText('Mail waits, and the first one has been the first in the mailbox since before that time.'),
  ),
});

/** Maximum devices per call, which takes some milliseconds of each shard. */
export const devicesPerChangeMax = 500;
export const deviceSelection = closedObject(
  {
    device_ids: Type.Optional(Type.Array(deviceId, { minItems: 1, maxItems: devicesPerChangeMax })),
    all: Type.Optional(Type.Literal(true)),
    ...deviceFilter.properties,
    tag: Type.Optional(oneOrSeveral(tag, tagsMax, 'The device has all of these tags.')),
  },
  { minProperties: 1, description: 'Ids, the filters of a list, or all.' },
);
export const selectedChange = closedPartial(
  { enabled: Type.Boolean(), add_tags: tags, remove_tags: tags },
  { minProperties: 1 },
);
export const changedDevicesDocument = Type.Object({
  changed: Type.Integer(),
  unchanged: Type.Integer({ description: 'Devices that were already so.' }),
  refused: Type.Array(Type.Object({ device_id: deviceId, error: Type.String(), msg: Type.String() })),
  next: nullable('string', { description: 'Pass as `after` to continue; null when all are done.' }),
});
export type ChangedDevicesDocument = Static<typeof changedDevicesDocument>;

export const newDevicesBody = closedObject({
  count: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  tags: Type.Optional(tags),
});
/** A device as one line of an import or an export. */
export const deviceLine = closedPartial({
  device_id: deviceId,
  name,
  tags,
  enabled: Type.Boolean(),
  secret: Type.String({ pattern: deviceSecretPattern.source }),
  secret_digest: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
/** The outcome of one line of an import. Members without a value are absent; cells of a CSV, empty. */
export interface ImportedLine {
  line: number;
  device_id?: string;
  result: 'created' | 'updated' | 'unchanged' | 'skipped' | 'error';
  /** Only if the secret was generated by the server. */
  device_secret?: string;
  error?: string;
  msg?: string;
}

export const lockoutDocument = Type.Interface([deviceLockoutDocument], {
  fleet_id: nullable('string', { description: 'Null: claim tokens of any fleet.' }),
  device_id: nullable('string', { description: 'Null: from claiming, with wrong tokens.' }),
});
export type LockoutDocument = Static<typeof lockoutDocument>;

/** All parameters must match. */
export const lockoutFilter = {
  fleet_id: Type.Optional(fleetId),
  device_id: Type.Optional(deviceId),
  address: Type.Optional(
    Type.String({ maxLength: 64, description: 'An IP address, or the /64 of an IPv6 one.' }),
  ),
};
export const lockoutSelection = Type.Object({
  ...lockoutFilter,
  all: Type.Optional(Type.Literal('true', { description: 'Every lockout, with no filter.' })),
});

export const liftedDocument = Type.Object({ lifted: Type.Integer() });
export type LiftedDocument = Static<typeof liftedDocument>;
