import { activeSecondsMax, mailTtlSecondsMax } from '../core/bounds.ts';
import { integer, reloadable, type ValuesOf } from '../core/config/config-key.ts';

/** What a device, its mail and its records may take, on every engine. */
export const domainKeys = {
  bodyBytesMax: integer(65_536, 1_024, 65_536, 'Largest request body (D9).'),
  idempotencyWindowSeconds: integer(
    86_400,
    60,
    604_800,
    'Greatest age of an idempotency key, and how long it is remembered (D18). Raise it for devices that are offline for longer.',
  ),
  idempotencySkewSeconds: reloadable(
    integer(
      300,
      0,
      3_600,
      'How far ahead the time of an idempotency key may be (D18). Raise it for devices whose clocks are wrong.',
    ),
  ),
  mailboxMailsMax: reloadable(
    integer(1_000, 1, 65_535, 'Mails in one mailbox, unless its fleet says otherwise (D16).'),
  ),
  mailTtlSeconds: reloadable(
    integer(
      604_800,
      1,
      mailTtlSecondsMax,
      'Life of a mail, unless its fleet or the mail says otherwise (D16).',
    ),
  ),
  delayedMailsPerDeviceMax: integer(
    100,
    1,
    1_000,
    'Mails of one device that wait for their time of delivery; one more is refused. Raise it for long schedules.',
  ),
  receiptRetentionSeconds: integer(
    2_592_000,
    60,
    315_360_000,
    'How long the receipt of a mail is kept once the mail is settled (D17).',
  ),
  deadLetterRetentionSeconds: integer(2_592_000, 60, 315_360_000, 'How long a dead letter is kept (D16).'),
  deadLettersPerFleetMax: integer(
    10_000,
    1,
    1_000_000,
    'Dead letters of one fleet in one shard; for one more, the oldest goes. Raise it where they are replayed late.',
  ),
  logRetentionSeconds: reloadable(
    integer(
      2_592_000,
      60,
      315_360_000,
      'How long datapoints and messages stay in the ingest log, unless their fleet says otherwise.',
    ),
  ),
  logBytesMax: reloadable(
    integer(
      0,
      0,
      16_384 * 1024 ** 3,
      'Largest size of the ingest log on disk, all shards together, each with its part. The oldest records go first. 0: half of the disk that is free or the shards have at the start; on databases, no limit.',
    ),
  ),
  activeSeconds: reloadable(
    integer(
      300,
      1,
      activeSecondsMax,
      'How long a device counts as active after it was seen, unless its fleet says otherwise.',
    ),
  ),
  secretGraceSecondsMax: reloadable(
    integer(
      2_592_000,
      0,
      31_536_000,
      'How long the old secret of a device may go on working beside its new one.',
    ),
  ),
  deviceRequestsPerSecondMax: reloadable(
    integer(
      1_000,
      0,
      1_000_000,
      'Requests of one device, unless its fleet says otherwise; beyond twice as many at once, 429; 0 for no limit.',
    ),
  ),
  deviceBytesPerSecondMax: reloadable(
    integer(
      1_048_576,
      0,
      1_073_741_824,
      'Bytes of bodies of one device, unless its fleet says otherwise; beyond twice as many at once, 429; 0 for no limit.',
    ),
  ),
  fleetRequestsPerSecondMax: reloadable(
    integer(0, 0, 100_000_000, 'Requests of all devices of one fleet, likewise; 0 for no limit.'),
  ),
};

export type DomainConfig = ValuesOf<typeof domainKeys>;
