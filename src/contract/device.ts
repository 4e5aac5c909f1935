import { type Static, Type } from 'typebox';
import { tagsMax } from '../core/bounds.ts';
import { deviceSecretPattern } from '../core/identity.ts';
import { deviceLockoutDocument } from './access/lockout.ts';
import {
  closedObject,
  closedPartial,
  deviceId,
  fleetId,
  listOf,
  name,
  nullable,
  oneOrSeveral,
  pageLimit,
  repeatedParameter,
  tag,
  tags,
  time,
  timeText,
  wordOf,
} from './document.ts';
import { refusalReasons } from './monitoring/refusal.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

/** Connection states; the first that applies. */
const states = ['connected', 'active', 'offline'] as const;
export type DeviceState = (typeof states)[number];

/** Members of a device that operators set, named as they are kept. */
const description = { name, tags };

export const deviceDocument = Type.Object({
  fleet_id: fleetId,
  device_id: deviceId,
  ...description,
  enabled: Type.Boolean(),
  created_at: time,
  old_secret_until: nullable('string', {
    description: 'When the old secret expires, while it is still valid beside the new one.',
  }),
  state: wordOf(states, {
    description:
      'connected: an event stream is open, or a request waits for mail; active: seen within active_seconds; else offline.',
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

/** A device with what only its own page reads. */
const shownDeviceDocument = Type.Interface([deviceDocument], {
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
const createdDeviceDocument = Type.Interface([secretDocument], {
  ...description,
  enabled: Type.Boolean(),
  created_at: time,
});
export type CreatedDeviceDocument = Static<typeof createdDeviceDocument>;
const rotatedSecretDocument = Type.Interface([secretDocument], {
  old_secret_until: nullable('string'),
});
export type RotatedSecretDocument = Static<typeof rotatedSecretDocument>;

const newDeviceBody = closedPartial({ device_id: deviceId, ...description });
const deviceChangeBody = closedPartial({ enabled: Type.Boolean(), ...description });
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
  silent_after: Type.Optional(
    timeText(
      'Was active, and has been offline since that time or later: `active_seconds` after it was last seen. A disabled device is not silent, unless `enabled` asks for such ones; nor is one that this node has refused since.',
    ),
  ),
  refused: Type.Optional(
    wordOf(['any', ...refusalReasons], {
      description:
        'Why this node refuses its requests now, as `GET …/refusals` lists it: of the last hour, what has not been accepted since.',
    }),
  ),
  waiting_before: Type.Optional(
    timeText('Mail waits, and the first one has been the first in the mailbox since before that time.'),
  ),
});
export type DeviceFilterDocument = Static<typeof deviceFilter>;

/** Maximum devices per call, which takes some milliseconds of each shard. */
export const devicesPerChangeMax = 500;
/** Selects devices in a body: the filters of a list, or all. */
export const deviceSelector = {
  all: Type.Optional(Type.Literal(true)),
  ...deviceFilter.properties,
  tag: Type.Optional(oneOrSeveral(tag, tagsMax, 'The device has all of these tags.')),
};
const deviceSelection = closedObject(
  {
    device_ids: Type.Optional(Type.Array(deviceId, { minItems: 1, maxItems: devicesPerChangeMax })),
    ...deviceSelector,
  },
  { minProperties: 1, description: 'Ids, the filters of a list, or all.' },
);
const selectedChange = closedPartial(
  { enabled: Type.Boolean(), add_tags: tags, remove_tags: tags },
  { minProperties: 1 },
);
const changedDevicesDocument = Type.Object({
  changed: Type.Integer(),
  changed_ids: Type.Array(deviceId, { description: 'Those that were changed, by which it can be undone.' }),
  unchanged: Type.Integer({ description: 'Devices that were already so.' }),
  refused: Type.Array(Type.Object({ device_id: deviceId, error: Type.String(), msg: Type.String() })),
  next: nullable('string', { description: 'Pass as `after` to continue; null when all are done.' }),
});
export type ChangedDevicesDocument = Static<typeof changedDevicesDocument>;

const cursorPattern = '^([A-Za-z0-9]{0,10}|[a-z]\\.[A-Za-z0-9_-]{1,80})$';
const deviceChangesBody = closedObject({
  select: deviceSelection,
  change: selectedChange,
  after: Type.Optional(Type.String({ pattern: cursorPattern })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: devicesPerChangeMax })),
});
export type DeviceChangesBody = Static<typeof deviceChangesBody>;

const deviceCountDocument = Type.Object({
  devices: Type.Integer(),
  offline: Type.Integer({ description: 'Those of them that are neither connected nor active.' }),
  next: nullable('string', {
    description: 'Pass as `after` to count on, and add the counts; null when all are counted.',
  }),
});
export type DeviceCountDocument = Static<typeof deviceCountDocument>;
const deviceTagsDocument = Type.Object({
  items: Type.Array(Type.Object({ tag, devices: Type.Integer() }), {
    description: 'The most frequent first, up to 200.',
  }),
  is_all: Type.Boolean({ description: 'False if the fleet has more devices, whose tags may be others.' }),
});

/** `/fleets/{fleet_id}/devices`, each device under it, the rotation of its secret, and changes of many devices. */
export const deviceRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices': {
    scope: 'read',
    summary: 'List or find devices',
    description:
      'In order of device id, or of the most selective index, unless `order` asks for another. A page scans a bounded number of devices, so it may have fewer than `limit`, or none, and still have a `next`.',
    query: Type.Object({
      ...deviceFilter.properties,
      order: Type.Optional(
        wordOf(['seen', '-seen'], {
          description:
            'By last sight, to ten minutes: the earliest first, beginning with devices that were never seen, or the latest.',
        }),
      ),
      after: Type.String({ default: '', pattern: cursorPattern }),
      limit: pageLimit,
    }),
    answers: { 200: listOf(deviceDocument) },
  },
  'GET /fleets/{fleet_id}/devices:count': {
    scope: 'read',
    summary: 'Count devices',
    description:
      'Counts the devices that a list has with the same filters, a bounded number per call. Without filters, all at once.',
    query: Type.Object({
      ...deviceFilter.properties,
      after: Type.String({ default: '', pattern: cursorPattern }),
      limit: Type.Integer({ minimum: 1, maximum: 5_000, default: 5_000 }),
    }),
    answers: { 200: deviceCountDocument },
  },
  'GET /fleets/{fleet_id}/tags': {
    scope: 'read',
    summary: 'List tags of devices',
    description:
      'Counts the tags of the first 2,000 devices of a fleet, by id, a minute ago or less: to suggest some, not to count all.',
    answers: { 200: deviceTagsDocument },
  },
  'POST /fleets/{fleet_id}/devices': {
    scope: 'provision',
    summary: 'Create a device',
    body: newDeviceBody,
    answers: { 201: createdDeviceDocument },
  },
  'GET /fleets/{fleet_id}/devices/{device_id}': {
    scope: 'read',
    summary: 'Show a device',
    answers: { 200: shownDeviceDocument },
  },
  'PATCH /fleets/{fleet_id}/devices/{device_id}': {
    scope: 'provision',
    summary: 'Change a device',
    body: deviceChangeBody,
    answers: { 200: deviceDocument },
  },
  'DELETE /fleets/{fleet_id}/devices/{device_id}': {
    scope: 'provision',
    summary: 'Delete a device with its mailbox',
    answers: { 204: noDocument },
  },
  'POST /fleets/{fleet_id}/devices/{device_id}/rotate-secret': {
    scope: 'provision',
    summary: 'Rotate the secret of a device',
    description:
      'Generates a new secret, shown only once. The old one expires at once, or after `grace_seconds`, during which both are valid.',
    body: closedPartial({ grace_seconds: Type.Integer({ minimum: 0 }) }),
    answers: { 200: rotatedSecretDocument },
  },
  'POST /fleets/{fleet_id}/devices:change': {
    scope: 'provision',
    summary: 'Change many devices',
    description:
      'Changes all selected devices, some per call: call again with `next` as `after` until it is null. Idempotent. Disabling ends streams within a second.',
    body: deviceChangesBody,
    answers: { 200: changedDevicesDocument },
  },
});

export const newDevicesBody = closedObject({
  count: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  tags: Type.Optional(tags),
});
/** A device as one line of an import or an export. */
export const deviceLine = closedPartial({
  device_id: deviceId,
  ...description,
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
