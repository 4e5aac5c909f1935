import type { FleetDocument } from '../../../contract/fleet.ts';
import { parseSpan, spanText } from '../../server/clock.ts';

export type LimitName = FleetDocument['own'][number];
export type LimitUnit = 'count' | 'seconds' | 'bytes' | 'per second' | 'bytes per second';

export interface Limit {
  name: LimitName;
  title: string;
  unit: LimitUnit;
  /** Says what it does, and what of it is not obvious. */
  hint: string;
  /** Less of it removes what is there. */
  isRetention?: true;
}

/** The limits of a fleet by what they are about. */
export const limitGroups: readonly (readonly [string, readonly Limit[]])[] = [
  [
    'Mail',
    [
      {
        name: 'mailbox_mails_max',
        title: 'Mails in a mailbox',
        unit: 'count',
        hint: 'One more is refused: mailbox_full.',
      },
      {
        name: 'mail_bytes_max',
        title: 'Size of the mail that waits',
        unit: 'bytes',
        hint: 'Beyond it mail is refused: fleet_mail_full. Never above mailBytesPerFleetMax.',
      },
      {
        name: 'mail_ttl_seconds',
        title: 'Time to live of mail',
        unit: 'seconds',
        hint: 'Unless its sender says otherwise.',
      },
      {
        name: 'mail_requeues_max',
        title: 'Requeues of a mail',
        unit: 'count',
        hint: 'Beyond it, the mail is a dead letter. No limit unless there is one here.',
      },
    ],
  ],
  [
    'Rates',
    [
      {
        name: 'requests_per_second_max',
        title: 'Requests of all devices',
        unit: 'per second',
        hint: 'Beyond it 429. 0: no limit.',
      },
      {
        name: 'device_requests_per_second_max',
        title: 'Requests of one device',
        unit: 'per second',
        hint: 'Beyond it 429; bursts are allowed. 0: no limit.',
      },
      {
        name: 'device_bytes_per_second_max',
        title: 'Bytes of one device',
        unit: 'bytes per second',
        hint: '0: no limit.',
      },
    ],
  ],
  [
    'Records',
    [
      {
        name: 'log_retention_seconds',
        title: 'Retention',
        unit: 'seconds',
        hint: 'Older records are removed for good.',
        isRetention: true,
      },
      {
        name: 'log_bytes_max',
        title: 'Size of the log',
        unit: 'bytes',
        hint: 'Beyond it the oldest records are removed for good. No limit unless there is one here.',
        isRetention: true,
      },
    ],
  ],
  [
    'Devices',
    [
      {
        name: 'active_seconds',
        title: 'Counts as active for',
        unit: 'seconds',
        hint: 'After its last request. Then a device that is not connected counts as offline.',
      },
    ],
  ],
];

const bytesOf = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };

function isBytes(unit: LimitUnit): boolean {
  return unit === 'bytes' || unit === 'bytes per second';
}

/** Reads a limit: a number, of times also `7 d`, of sizes also `10 MiB`. Undefined if it is none; null for an empty text. */
export function parseLimit(text: string, unit: LimitUnit): number | null | undefined {
  const trimmed = text.trim().replaceAll(',', '');
  if (trimmed === '') return null;
  if (/^\d{1,16}$/.test(trimmed)) return Number(trimmed);
  if (unit === 'seconds') {
    const spanMs = parseSpan(trimmed);
    return spanMs === undefined ? undefined : spanMs / 1_000;
  }
  const [, digits, size] = /^(\d{1,9}(?:\.\d{1,3})?)\s*(B|KiB|MiB|GiB|TiB)$/.exec(trimmed) ?? [];
  if (!isBytes(unit) || digits === undefined || size === undefined) return undefined;
  return Math.round(Number(digits) * bytesOf[size as keyof typeof bytesOf]);
}

/** A limit as it is read again to the same number: `7 d`, `10 MiB`, `604,801`. */
export function limitText(value: number, unit: LimitUnit): string {
  const plain = value.toLocaleString('en');
  if (unit === 'seconds' && value >= 60) {
    const text = spanText(value * 1_000);
    return parseLimit(text, unit) === value ? text : plain;
  }
  if (!isBytes(unit)) return plain;
  const [name, bytes] = Object.entries(bytesOf).findLast(([, one]) => value >= one && value % one === 0) ?? [
    'B',
    1,
  ];
  return bytes === 1 ? plain : `${(value / bytes).toLocaleString('en')} ${name}`;
}

/** Words after a number without a unit of its own. */
export function unitText(unit: LimitUnit): string {
  return { count: '', seconds: 's', bytes: 'B', 'per second': 'per s', 'bytes per second': 'B per s' }[unit];
}
