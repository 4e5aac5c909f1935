import type { diagnosisRoutes } from '../../contract/monitoring/diagnosis.ts';
import { addressText, clientAddressText } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import { type DiagnosisInput, diagnose } from '../../domain/devices/diagnosis.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import type { RefusalLog } from '../../domain/devices/refusals.ts';
import type { Shards } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import { activeMsOf, describeDevices } from '../request/device-state.ts';
import type { Handlers } from '../request/routes.ts';

interface Parts {
  config: AdminApiConfig;
  lockouts: LockoutList;
  refusals: RefusalLog;
  registry: Registry;
  shards: Shards;
}

/** Mails at the head of the mailbox that are looked at. */
const mailsMax = 20;
const lockoutsMax = 20;

/** Reads all that a diagnosis follows from. @throws ApiError device_not_found. */
async function inputOf(parts: Parts, path: { fleet_id: string; device_id: string }): Promise<DiagnosisInput> {
  const { config, lockouts, refusals, registry, shards } = parts;
  const device = deviceOfRequest(parts, path);
  const { fleet } = registry.fleet(path.fleet_id);
  const shard = shards.of(device);
  const status = await shard.devices.get(device);
  if (status === undefined) throw new ApiError('device_not_found');
  const [document] = await describeDevices(parts, fleet, [status]);
  const mails = await shard.mail.list(device, '', mailsMax);
  const delayed = await shard.mail.listDelayed(device, '', 1);
  const { fleetId } = fleet;
  const locked = lockouts.list({ fleetId, deviceId: deviceIdOf(device) }, '', lockoutsMax);
  const { enabled, createdAtMs, lastSeenMs, lastAddress, mailboxSize, waitingSinceMs } = status;
  return {
    nowMs: Date.now(),
    enabled,
    createdAtMs,
    state: document?.state ?? 'offline',
    activeMs: activeMsOf(fleet, config),
    lastSeenMs,
    lastAddress: lastAddress === undefined ? undefined : addressText(lastAddress),
    mailboxSize,
    mailboxMailsMax: fleet.mailboxMailsMax ?? config.settings.current.mailboxMailsMax,
    waitingSinceMs,
    mails: mails.items,
    delayedMails: delayed.total,
    nextDeliveryMs: delayed.items[0]?.deliverAtMs,
    refusals: await refusals.of(device),
    lockouts: locked.items.map(({ address, untilMs }) => ({ address: clientAddressText(address), untilMs })),
  };
}

/** Handles `…/devices/{device_id}/diagnosis`. */
export function diagnosisHandlers(parts: Parts): Handlers<typeof diagnosisRoutes> {
  return {
    'GET /fleets/{fleet_id}/devices/{device_id}/diagnosis': async ({ params }) => {
      const findings = diagnose(await inputOf(parts, params));
      const [first] = findings;
      if (first === undefined) throw new Error('a diagnosis has a sentence');
      return { ...first, findings };
    },
  };
}
