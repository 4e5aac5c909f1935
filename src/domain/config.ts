import { activeSecondsMax, mailTtlSecondsMax } from '../core/bounds.ts';
import { type ConfigOf, integer, reloadable } from '../core/config/config-key.ts';

/** Limits of devices, mail and records, on every engine. */
export const domainKeys = {
  bodyBytesMax: integer(65_536, 1_024, 65_536, 'Maximum size of a request body (D9).'),
  idempotencyWindowSeconds: integer(
    86_400,
    60,
    604_800,
    'Maximum age of an idempotency key, and how long it is remembered (D18). Raise it for devices that are offline longer.',
  ),
  idempotencySkewSeconds: reloadable(
    integer(
      300,
      0,
      3_600,
      'Maximum lead of an idempotency key over the clock (D18). Raise it for devices whose clocks are wrong.',
    ),
  ),
  recordedAgeSecondsMax: reloadable(
    integer(
      2_592_000,
      0,
      315_360_000,
      'Maximum age of the time that a device gives its datapoint or message by Recorded-At (D25). Raise it for devices that are offline longer.',
    ),
  ),
  mailboxMailsMax: reloadable(
    integer(1_000, 1, 65_535, 'Maximum mails per mailbox; a fleet can override it (D16).'),
  ),
  mailTtlSeconds: reloadable(
    integer(604_800, 1, mailTtlSecondsMax, 'TTL of a mail; a fleet or the mail can override it (D16).'),
  ),
  delayedMailsPerDeviceMax: integer(
    100,
    1,
    1_000,
    'Maximum delayed mails per device; further ones are refused. Raise it for long schedules.',
  ),
  receiptRetentionSeconds: integer(
    2_592_000,
    60,
    315_360_000,
    'Retention of the receipt of a settled mail (D17).',
  ),
  deadLetterRetentionSeconds: integer(2_592_000, 60, 315_360_000, 'Retention of dead letters (D16).'),
  deadLettersPerFleetMax: integer(
    10_000,
    1,
    1_000_000,
    'Maximum dead letters per fleet and shard; beyond it, the oldest is dropped. Raise it if they are replayed late.',
  ),
  logRetentionSeconds: reloadable(
    integer(
      2_592_000,
      60,
      315_360_000,
      'Retention of datapoints and messages in the ingest log; a fleet can override it.',
    ),
  ),
  logBytesMax: reloadable(
    integer(
      0,
      0,
      16_384 * 1024 ** 3,
      'Maximum size of the ingest log on disk, divided among the shards. Beyond it, the oldest records are removed. 0: half of the disk space that at the start is free or used by the shards; on databases, no limit.',
    ),
  ),
  activeSeconds: reloadable(
    integer(
      300,
      1,
      activeSecondsMax,
      'How long a device counts as active after it was last seen; a fleet can override it.',
    ),
  ),
  stuckSeconds: reloadable(
    integer(
      600,
      1,
      activeSecondsMax,
      'How long a mailbox may have the same mail at its head before it counts as stuck: it is then named on the first page of the console. Raise it for devices that sleep longer.',
    ),
  ),
  secretGraceSecondsMax: reloadable(
    integer(2_592_000, 0, 31_536_000, 'Maximum grace period of an old device secret beside the new one.'),
  ),
  deviceRequestsPerSecondMax: reloadable(
    integer(
      1_000,
      0,
      1_000_000,
      'Maximum request rate of a device; a fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
    ),
  ),
  deviceBytesPerSecondMax: reloadable(
    integer(
      1_048_576,
      0,
      1_073_741_824,
      'Maximum rate of body bytes of a device; a fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
    ),
  ),
  fleetRequestsPerSecondMax: reloadable(
    integer(
      0,
      0,
      100_000_000,
      'Maximum request rate of a fleet; the fleet can override it. Beyond bursts of twice as many, 429. 0: no limit.',
    ),
  ),
};

export type DomainConfig = ConfigOf<typeof domainKeys>;
