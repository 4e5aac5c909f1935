import type { Device, DeviceCredentials, DeviceStatus } from '../../../domain/devices/device.ts';
import { deviceFields } from '../../../domain/devices/device-fields.ts';
import { nameInKey } from '../../../domain/devices/device-query.ts';
import { picked } from '../../../domain/fields.ts';
import { type ActivityRow, type DeviceRow, device, type MailboxRow } from '../schema/tables.ts';

const digestBytes = 32;

/** Columns that authentication needs, of the table `t`. */
export const credentialsColumns = (['device', 'enabled', 'secretDigests', 'oldSecretUntilMs'] as const)
  .map((name) => device.selected(name))
  .join(', ');
export type CredentialsRow = Pick<DeviceRow, 'device' | 'enabled' | 'secretDigests' | 'oldSecretUntilMs'>;

export function credentialsOf({
  enabled,
  secretDigests: digests,
  oldSecretUntilMs,
}: CredentialsRow): DeviceCredentials {
  const secretDigests: Uint8Array[] = [];
  for (let at = 0; at < digests.length; at += digestBytes) {
    secretDigests.push(copyOf(digests, at, at + digestBytes));
  }
  return { enabled, secretDigests, ...(oldSecretUntilMs !== undefined && { oldSecretUntilMs }) };
}

export function deviceOfRow(row: DeviceRow): Device {
  return { device: row.device, ...credentialsOf(row), ...picked(deviceFields, row) };
}

/** Columns of a device's status, from tables `t`, `m` and `a`. */
export const statusColumns = `${device.columns},
  m.size, m.waiting_since_ms AS "waitingSinceMs", a.last_seen_ms, a.address`;

export type StatusRow = DeviceRow &
  Pick<ActivityRow, 'last_seen_ms' | 'address'> &
  Pick<MailboxRow, 'size'> & { waitingSinceMs: number | null };

export function deviceStatusOfRow(row: StatusRow): DeviceStatus {
  const { size: mailboxSize, waitingSinceMs, last_seen_ms: lastSeenMs, address } = row;
  return {
    ...deviceOfRow(row),
    mailboxSize,
    waitingSinceMs: waitingSinceMs ?? undefined,
    lastSeenMs: lastSeenMs ?? undefined,
    lastAddress: address === null ? undefined : copyOf(address, 0, address.length),
  };
}

export function rowOf(made: Device): DeviceRow {
  const { device, enabled, oldSecretUntilMs, name } = made;
  return {
    device,
    enabled,
    secretDigests: Buffer.concat(made.secretDigests),
    oldSecretUntilMs,
    nameKey: name === '' ? undefined : nameKeyOf(name),
    ...picked(deviceFields, made),
  };
}

/** Copies: a view passed to another thread would take the whole underlying buffer along. */
function copyOf(bytes: Buffer, from: number, to: number): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes, from, to);
}

/** The indexed prefix of a name. */
export function nameKeyOf(name: string): Buffer {
  return Buffer.from(nameInKey(name), 'latin1');
}
