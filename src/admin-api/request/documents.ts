import { type Static, type TSchema, Type } from 'typebox';
import { addressText } from '../../core/address.ts';
import {
  activeSecondsMax,
  mailTtlSecondsMax,
  mailRequeuesMax as requeuesMaxMax,
  tagLengthMax,
  tagsMax,
} from '../../core/bounds.ts';
import {
  deviceIdOf,
  deviceIdPattern,
  deviceSecretPattern,
  fleetIdOf,
  fleetIdPattern,
} from '../../core/identity.ts';
import { plainCharacter } from '../../core/plain-text.ts';
import type { Fleet } from '../../declarations/fleet.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import type { AdminApiConfig } from '../config.ts';

/** Schemas of the admin API's documents, and the functions that create them. */
export const nullable = <T extends 'string' | 'integer'>(type: T, options: object = {}) =>
  Type.Unsafe<(T extends 'string' ? string : number) | null>({ type: [type, 'null'], ...options });

export const fleetId = Type.String({ pattern: fleetIdPattern.source });
export const deviceId = Type.String({ pattern: deviceIdPattern.source });
const plainText = `^${plainCharacter}*$`;
export const name = Type.String({ maxLength: 255, pattern: plainText });
export const tag = Type.String({ minLength: 1, maxLength: tagLengthMax, pattern: plainText });
export const tags = Type.Array(tag, {
  maxItems: tagsMax,
  uniqueItems: true,
});
/** A query parameter that is repeated for each value. */
export function repeatedParameter<T extends TSchema>(item: T, maxItems: number, description: string) {
  return Type.Optional(Type.Array(item, { minItems: 1, maxItems, description }));
}

export const time = Type.String({ description: 'ISO 8601, UTC' });

export const mailboxMailsMax = { minimum: 1, maximum: 65_535 };
export const mailTtlSeconds = { minimum: 1, maximum: mailTtlSecondsMax };
export const requeuesMaxDocument = { minimum: 0, maximum: requeuesMaxMax };

/** 0: no limit. */
const requestsPerSecondMax = { minimum: 0, maximum: 100_000_000 };
const bytesPerSecondMax = { minimum: 0, maximum: 1_073_741_824 };

const logRetentionSeconds = { minimum: 60, maximum: 315_360_000 };
const logBytesMax = { minimum: 65_536, maximum: Number.MAX_SAFE_INTEGER };

/** Null resets a limit to that of the configuration. */
export const fleetLimits = Type.Object({
  mailbox_mails_max: nullable('integer', mailboxMailsMax),
  mail_ttl_seconds: nullable('integer', mailTtlSeconds),
  mail_requeues_max: nullable('integer', requeuesMaxDocument),
  requests_per_second_max: nullable('integer', requestsPerSecondMax),
  device_requests_per_second_max: nullable('integer', requestsPerSecondMax),
  device_bytes_per_second_max: nullable('integer', bytesPerSecondMax),
  active_seconds: nullable('integer', { minimum: 1, maximum: activeSecondsMax }),
  log_retention_seconds: nullable('integer', logRetentionSeconds),
  log_bytes_max: nullable('integer', logBytesMax),
}).properties;

export const fleetPath = Type.Object({ fleet_id: Type.String() });
export const devicePath = Type.Object({ fleet_id: Type.String(), device_id: Type.String() });

export const pageLimit = Type.Integer({ minimum: 1, maximum: 1_000, default: 100 });

export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    items: Type.Array(item),
    next: nullable('string', { description: 'Pass as `after` for the next page; null on the last.' }),
  });
}

const errorDocument = Type.Object({
  error: Type.String(),
  msg: Type.String(),
  errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), msg: Type.String() }))),
});

/** Error answers of every route. */
export const errorAnswers = { '4xx': errorDocument, '5xx': errorDocument };

export const fleetDocument = Type.Object({
  fleet_id: fleetId,
  name,
  created_at: time,
  mailbox_mails_max: Type.Integer(),
  mail_ttl_seconds: Type.Integer(),
  mail_requeues_max: nullable('integer', { description: 'Null: mail may be requeued any number of times.' }),
  requests_per_second_max: Type.Integer(),
  device_requests_per_second_max: Type.Integer(),
  device_bytes_per_second_max: Type.Integer(),
  active_seconds: Type.Integer({ description: 'How long a device counts as active after it was seen.' }),
  log_retention_seconds: Type.Integer(),
  log_bytes_max: nullable('integer', { description: 'Null for no limit of its own.' }),
});

/** Describes a fleet with its effective limits: its own, or those of the configuration. */
export function describeFleet(fleet: Fleet, config: AdminApiConfig): Static<typeof fleetDocument> {
  return {
    fleet_id: fleet.fleetId,
    name: fleet.name,
    created_at: new Date(fleet.createdAtMs).toISOString(),
    mailbox_mails_max: fleet.mailboxMailsMax ?? config.mailboxMailsMax,
    mail_ttl_seconds: fleet.mailTtlSeconds ?? config.mailTtlSeconds,
    mail_requeues_max: fleet.mailRequeuesMax ?? null,
    requests_per_second_max: fleet.requestsPerSecondMax ?? config.fleetRequestsPerSecondMax,
    device_requests_per_second_max: fleet.deviceRequestsPerSecondMax ?? config.deviceRequestsPerSecondMax,
    device_bytes_per_second_max: fleet.deviceBytesPerSecondMax ?? config.deviceBytesPerSecondMax,
    active_seconds: fleet.activeSeconds ?? config.activeSeconds,
    log_retention_seconds: fleet.logRetentionSeconds ?? config.logRetentionSeconds,
    log_bytes_max: fleet.logBytesMax ?? null,
  };
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** States of a device; the first that applies. */
export const deviceStates = ['connected', 'active', 'offline'] as const;

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
  state: Type.Unsafe<(typeof deviceStates)[number]>({
    type: 'string',
    enum: [...deviceStates],
    description: 'connected: an event stream is open; active: seen within active_seconds; else offline.',
  }),
  last_seen: nullable('string'),
  last_address: nullable('string', {
    description: 'Address of the client, or of the load balancer in front.',
  }),
  mailbox_size: Type.Integer(),
});

export function describeDevice(
  status: DeviceStatus,
  state: (typeof deviceStates)[number],
): Static<typeof deviceDocument> {
  return {
    fleet_id: fleetIdOf(status.device),
    device_id: deviceIdOf(status.device),
    name: status.name,
    tags: [...status.tags],
    enabled: status.enabled,
    created_at: new Date(status.createdAtMs).toISOString(),
    old_secret_until: isoTime(status.oldSecretUntilMs),
    state,
    last_seen: isoTime(status.lastSeenMs),
    last_address: status.lastAddress === undefined ? null : addressText(status.lastAddress),
    mailbox_size: status.mailboxSize,
  };
}

/** The only document with a secret, shown once, when the secret is generated. */
export const secretDocument = Type.Object({
  fleet_id: fleetId,
  device_id: deviceId,
  device_secret: Type.String({ pattern: deviceSecretPattern.source }),
});
