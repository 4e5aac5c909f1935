import type { Device, DeviceCredentials, DeviceStatus } from '../../../domain/devices/device.ts';
import { nameInKey } from '../../../domain/devices/device-query.ts';
import { type ActivityRow, type DeviceRow, device, type MailboxRow } from '../schema/tables.ts';

const digestBytes = 32;

export type CredentialsRow = Pick<DeviceRow, 'enabled' | 'secret_digests' | 'old_secret_until_ms'>;

export function credentialsOf(row: CredentialsRow): DeviceCredentials {
  const { enabled, secret_digests: digests, old_secret_until_ms: untilMs } = row;
  const secretDigests: Uint8Array[] = [];
  for (let at = 0; at < digests.length; at += digestBytes) {
    secretDigests.push(copyOf(digests, at, at + digestBytes));
  }
  return { enabled, secretDigests, ...(untilMs !== null && { oldSecretUntilMs: untilMs }) };
}

export function deviceOfRow(row: DeviceRow): Device {
  const { device, name, tags, created_at_ms: createdAtMs } = row;
  return { device, ...credentialsOf(row), name, tags, createdAtMs };
}

/** Columns of a device's status, from tables `d`, `m` and `a`. */
export const statusColumns = `${device.columnNames.map((name) => `d.${name}`).join(', ')},
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

export function rowOf(device: Device): DeviceRow {
  const { name } = device;
  return {
    device: device.device,
    enabled: device.enabled,
    secret_digests: Buffer.concat(device.secretDigests),
    old_secret_until_ms: device.oldSecretUntilMs ?? null,
    name,
    name_key: name === '' ? null : nameKeyOf(name),
    tags: [...device.tags],
    created_at_ms: device.createdAtMs,
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
