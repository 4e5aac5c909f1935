import { EventLoopBudget } from '../../../core/async.ts';
import { ApiError, isUnavailable } from '../../../core/errors.ts';
import { type DeviceKey, deviceKeyOf } from '../../../core/identity.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { ActionConfig } from '../config.ts';
import type { RunError, RunReport, Send } from '../sandbox/run.ts';
import { harmless } from '../sandbox/text.ts';
import type { OutgoingMail } from './outbox-entry.ts';

/** Ids read from one shard per call. */
const pageSize = 1_000;
/** Limit for all mails of one run, as mailboxes store them: a quarter of what the outbox takes. */
const mailBytesMax = 16 * 1024 * 1024;
/** Limit for what is stored of them until then, where a payload that goes to many devices is there once. */
const payloadBytesMax = 1024 * 1024;
/** A run may send a thousand mails, each of which is checked. */
const budget = new EventLoopBudget();

export interface Addressing {
  fleets: Fleets;
  shards: { readonly all: readonly Shard[] };
  config: Pick<ActionConfig, 'settings'>;
}

/** Thrown where the mails of a run cannot be resolved. */
class RunFailure extends Error {
  readonly error: RunError;

  constructor(error: RunError) {
    super(error.msg);
    this.error = error;
  }
}

/**
 * Resolves what a run sends to mails for single devices, in sending order. Returns an error instead if the run reported
 * one, a mail does not match its schema (D12), or there are too many mails.
 */
export async function mailsOf(
  fleetId: string,
  { error, sends }: RunReport,
  addressing: Addressing,
): Promise<{ error: RunError | undefined; mails: OutgoingMail[] }> {
  if (error !== undefined) return { error, mails: [] };
  try {
    return { error, mails: await resolveSends(fleetId, sends, addressing) };
  } catch (failure) {
    if (failure instanceof RunFailure) return { error: failure.error, mails: [] };
    throw failure;
  }
}

async function resolveSends(
  fleetId: string,
  sends: readonly Send[],
  addressing: Addressing,
): Promise<OutgoingMail[]> {
  const mails: OutgoingMail[] = [];
  const { actionMailsMax: mailsMax } = addressing.config.settings.current;
  let payloadBytes = 0;
  let bytesInAll = 0;
  for (const { to, payload, ...mail } of sends) {
    await budget.take(fleetId);
    const bytes = Buffer.from(payload, 'utf8');
    checkMail(fleetId, mail.name, bytes, addressing.fleets);
    const devices =
      'tag' in to
        ? await devicesWithTag(fleetId, to.tag, addressing)
        : to.devices.map((id) => deviceKeyOf(fleetId, id));
    payloadBytes += bytes.length;
    bytesInAll += devices.length * bytes.length;
    if (mails.length + devices.length > mailsMax) throw tooMany(mailsMax);
    if (payloadBytes > payloadBytesMax) throw tooLarge(payloadBytesMax, 'different payloads');
    if (bytesInAll > mailBytesMax) throw tooLarge(mailBytesMax, 'its mails');
    for (const device of devices) mails.push({ ...mail, device, payload: bytes, ordinal: mails.length });
  }
  return mails;
}

function tooMany(mailsMax: number): RunFailure {
  return new RunFailure({
    code: 'too_many_mails',
    msg: `The run sends more than ${mailsMax} mails (actionMailsMax).`,
  });
}

function tooLarge(bytesMax: number, what: string): RunFailure {
  return new RunFailure({
    code: 'too_many_mails',
    msg: `The run sends more than ${bytesMax} bytes in ${what}.`,
  });
}

function checkMail(fleetId: string, name: string, bytes: Buffer, fleets: Fleets): void {
  try {
    fleets.checkMail(fleetId, name, JSON.parse(bytes.toString('utf8')) as JsonObject, bytes.length);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const [first] = error.options.errors ?? [];
    // Escaped, as a path has names of members in it, which may come from a device.
    const path = first === undefined || first.path === '' ? 'It' : harmless(first.path, 200);
    const where = first === undefined ? '' : ` ${path} ${first.msg}.`;
    const why = isUnavailable(error)
      ? `was not checked: ${error.message}`
      : `does not match its schema.${where}`;
    throw new RunFailure({ code: 'invalid_mail', msg: `A mail ${name} ${why}` });
  }
}

async function devicesWithTag(
  fleetId: string,
  tag: string,
  { shards, config }: Addressing,
): Promise<DeviceKey[]> {
  const devices: DeviceKey[] = [];
  for (const shard of shards.all) {
    let after = '';
    for (;;) {
      const ids = await shard.devices.idsWithTag(fleetId, tag, after, pageSize);
      for (const id of ids) devices.push(deviceKeyOf(fleetId, id));
      const { actionMailsMax } = config.settings.current;
      if (devices.length > actionMailsMax) throw tooMany(actionMailsMax);
      const last = ids.at(-1);
      if (last === undefined || ids.length < pageSize) break;
      after = last;
    }
  }
  return devices;
}
