import type { DeviceKey } from '../../core/identity.ts';
import type { MailEnd } from './ended-mail.ts';
import type { Enqueue, MailOutcome } from './mail.ts';

/** One mail for many devices. */
export interface Broadcast {
  /** UUIDv7, 16 bytes. Each device gets the mail once, however often it is listed. */
  broadcast: Uint8Array;
  devices: readonly DeviceKey[];
  mail: Omit<Enqueue, 'device' | 'dedupeKey' | 'idempotency' | 'broadcast'>;
}

/** Why a device did not get the mail. */
export type BroadcastRefusal = Exclude<MailOutcome['result'], 'queued'>;

export interface BroadcastOutcome {
  /** Queued now or before; counts a device each time it is listed. */
  queued: number;
  refused: { device: DeviceKey; reason: BroadcastRefusal }[];
}

/** Durable progress of a broadcast: done up to and including `after`, in device key order. */
export interface BroadcastProgress {
  broadcast: Uint8Array;
  after: string;
}

/** One step of counting how the mail of a broadcast ended. */
export interface BroadcastEndsQuery {
  broadcast: Uint8Array;
  /** When its mail was sent, by the wall clock; `untilMs` exclusive. */
  fromMs: number;
  untilMs: number;
  /** The position to continue after; '' is the beginning. */
  after: string;
  /** Maximum receipts to scan. */
  scanMax: number;
}

/** How mail of a broadcast ended, by the receipts that are retained. */
export interface BroadcastEnds {
  ends: Partial<Record<MailEnd, number>>;
  scanned: number;
  /** The last position scanned; undefined at the end. */
  reached: string | undefined;
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
