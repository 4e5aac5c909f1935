import { devicePath, errorAnswers } from '../../contract/document.ts';
import { diagnosisDocument } from '../../contract/insight/diagnosis.ts';
import { addressText, clientAddressText } from '../../core/address.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import { type DiagnosisInput, diagnose } from '../../domain/devices/diagnosis.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import type { RefusalLog } from '../../domain/devices/refusals.ts';
import type { AdminApiConfig } from '../config.ts';
import { type AdminApp, type AllShards, deviceOfRequest, type Handler } from '../request/context.ts';
import { describeDevices } from '../request/device-state.ts';
import { routesOf } from '../request/route.ts';

interface Needs {
  config: AdminApiConfig;
  lockouts: LockoutList;
  refusals: RefusalLog;
  registry: Registry;
  shards: AllShards;
}

/** Mails at the head of the mailbox that are looked at. */
const mailsMax = 20;
const lockoutsMax = 20;

/** Reads all that a diagnosis follows from. @throws ApiError device_not_found. */
async function inputOf(
  context: Needs,
  path: { fleet_id: string; device_id: string },
): Promise<DiagnosisInput> {
  const { config, lockouts, refusals, registry, shards } = context;
  const device = deviceOfRequest(context, path);
  const { fleet } = registry.fleet(path.fleet_id);
  const shard = shards.of(device);
  const status = await shard.devices.get(device);
  if (status === undefined) throw new ApiError('device_not_found');
  const [document] = await describeDevices(context, fleet, [status]);
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

const showing = {
  summary: 'Say why a device is stuck',
  description:
    'In one sentence, from its state, its mailbox, and what this node has refused to it lately; `ok` if nothing is wrong.',
  params: devicePath,
  response: { 200: diagnosisDocument, ...errorAnswers },
};

const showDiagnosis =
  (context: Needs): Handler<typeof showing> =>
  async ({ params }) => {
    const findings = diagnose(await inputOf(context, params));
    const [first] = findings;
    if (first === undefined) throw new Error('a diagnosis has a sentence');
    return { ...first, findings };
  };

/** Adds `…/devices/{device_id}/diagnosis`. */
export function addDiagnosisRoute(app: AdminApp, context: Needs): void {
  routesOf(app)(
    'GET',
    '/fleets/:fleet_id/devices/:device_id/diagnosis',
    'read',
    showing,
    showDiagnosis(context),
  );
}
