import { activeSecondsMax, mailTtlSecondsMax } from '../core/bounds.ts';
import { type ConfigOf, integer } from '../core/config/config-key.ts';

/** Limits of devices, mail and records, on every engine. */
export const domainKeys = {
  bodyBytesMax: integer(
    { default: 65_536, minimum: 1_024, maximum: 65_536 },
    'Maximum size of a request body (D9).',
  ),
  idempotencyWindowSeconds: integer(
    { default: 86_400, minimum: 60, maximum: 604_800 },
    'Maximum age of an idempotency key, and how long it is remembered (D18). Raise it for devices that are offline longer.',
  ),
  idempotencySkewSeconds: integer(
    { default: 300, minimum: 0, maximum: 3_600, isReloadable: true },
    'Maximum lead of an idempotency key over the clock (D18). Raise it for devices whose clocks are wrong.',
  ),
  recordedAgeSecondsMax: integer(
    { default: 2_592_000, minimum: 0, maximum: 315_360_000, isReloadable: true },
    'Maximum age of the time that a device gives its datapoint or message by Recorded-At (D25). Raise it for devices that are offline longer.',
  ),
  mailboxMailsMax: integer(
    { default: 1_000, minimum: 1, maximum: 65_535, isReloadable: true },
    'Maximum mails per mailbox; a fleet can override it (D16).',
  ),
  mailBytesPerFleetMax: integer(
    { default: 4 * 1024 ** 3, minimum: 0, maximum: 16_384 * 1024 ** 3, isReloadable: true },
    'Maximum bytes of the mail of one fleet that waits, over all shards: its payloads, and 256 bytes a mail; a fleet can only lower it (mail_bytes_max). Beyond it, more mail of that fleet is refused. 0: no limit. Set it to what of the disk the mail of one fleet may have.',
  ),
  mailTtlSeconds: integer(
    { default: 604_800, minimum: 1, maximum: mailTtlSecondsMax, isReloadable: true },
    'TTL of a mail; a fleet or the mail can override it (D16).',
  ),
  delayedMailsPerDeviceMax: integer(
    { default: 100, minimum: 1, maximum: 1_000 },
    'Maximum delayed mails per device; further ones are refused. Raise it for long schedules.',
  ),
  receiptRetentionSeconds: integer(
    { default: 2_592_000, minimum: 60, maximum: 315_360_000 },
    'Retention of the receipt of a settled mail (D17).',
  ),
  deadLetterRetentionSeconds: integer(
    { default: 2_592_000, minimum: 60, maximum: 315_360_000 },
    'Retention of dead letters (D16).',
  ),
  deadLettersPerFleetMax: integer(
    { default: 10_000, minimum: 1, maximum: 1_000_000 },
    'Maximum dead letters per fleet and shard; beyond it, the oldest is dropped. Raise it if they are replayed late.',
  ),
  logRetentionSeconds: integer(
    { default: 2_592_000, minimum: 60, maximum: 315_360_000, isReloadable: true },
    'Retention of datapoints and messages in the ingest log; a fleet can override it.',
  ),
  logBytesMax: integer(
    { default: 0, minimum: 0, maximum: 16_384 * 1024 ** 3, isReloadable: true },
    'Maximum size of the ingest log on disk, divided among the shards. Beyond it, the oldest records are removed. 0: half of the disk space that at the start is free or used by the shards; on databases, no limit.',
  ),
  logBytesPerFleetMax: integer(
    { default: 0, minimum: 0, maximum: 16_384 * 1024 ** 3, isReloadable: true },
    'Maximum bytes of the records of one fleet in the ingest log, over all shards; a fleet can only lower it (log_bytes_max). Beyond it, its own oldest records are removed. 0: no limit. Set it where fleets do not trust each other: else the records of one push out those of all.',
  ),
  activeSeconds: integer(
    { default: 300, minimum: 1, maximum: activeSecondsMax, isReloadable: true },
    'How long a device counts as active after it was last seen; a fleet can override it.',
  ),
  stuckSeconds: integer(
    { default: 600, minimum: 1, maximum: activeSecondsMax, isReloadable: true },
    'How long a mailbox may have the same mail at its head before it counts as stuck: it is then named on the first page of the console. Raise it for devices that sleep longer.',
  ),
  secretGraceSecondsMax: integer(
    { default: 2_592_000, minimum: 0, maximum: 31_536_000, isReloadable: true },
    'Maximum grace period of an old device secret beside the new one.',
  ),
  deviceRequestsPerSecondMax: integer(
    { default: 1_000, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Maximum request rate of a device; a fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
  ),
  deviceBytesPerSecondMax: integer(
    { default: 1_048_576, minimum: 0, maximum: 1_073_741_824, isReloadable: true },
    'Maximum rate of body bytes of a device, and of mail that it requeues; a fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
  ),
  fleetRequestsPerSecondMax: integer(
    { default: 0, minimum: 0, maximum: 100_000_000, isReloadable: true },
    'Maximum request rate of a fleet; the fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
  ),
};

export type DomainConfig = ConfigOf<typeof domainKeys>;
