import type { DeviceKey } from '../../core/identity.ts';
import type { Receipt } from './ended-mail.ts';
import type { Enqueue, MailOutcome } from './mail.ts';

/** One mail for many devices. */
export interface Broadcast {
  /** UUIDv7, 16 bytes. Each device gets the mail once, however often it is listed. */
  broadcast: Uint8Array;
  devices: readonly DeviceKey[];
  mail: Omit<Enqueue, 'device' | 'dedupeKey' | 'idempotency'>;
}

/** Why a device did not get the mail. */
export type BroadcastRefusal = Exclude<MailOutcome['result'], 'queued'>;

export interface BroadcastOutcome {
  /** Queued now or before; counts a device each time it is listed. */
  queued: number;
  refused: { device: DeviceKey; reason: BroadcastRefusal }[];
}

/** A broadcast of which a shard remembers who got the mail. */
export interface MarkedBroadcast {
  fleetId: string;
  id: Buffer;
}

/** A device that got the mail of a broadcast, and what became of it. */
export interface BroadcastMail {
  device: DeviceKey;
  mailId: Buffer;
  /** `unknown`: the mail went with its device, or its receipt is no longer retained. */
  state: Receipt['state'] | 'unknown';
  fetchCount: number;
}

/** Sends to each device in turn, and sums up what came of it. */
export function broadcastOutcome(
  { devices }: Pick<Broadcast, 'devices'>,
  send: (device: DeviceKey) => MailOutcome['result'],
): BroadcastOutcome {
  const outcome: BroadcastOutcome = { queued: 0, refused: [] };
  for (const device of devices) {
    const result = send(device);
    if (result === 'queued') outcome.queued += 1;
    else outcome.refused.push({ device, reason: result });
  }
  return outcome;
}
