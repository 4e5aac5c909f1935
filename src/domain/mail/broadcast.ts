import type { DeviceKey } from '../../core/identity.ts';
import type { Enqueue, MailOutcome } from './mail.ts';

/** One mail for many devices. */
export interface Broadcast {
  /** UUIDv7, 16 bytes: each device gets its mail once, however often it is among the devices. */
  broadcast: Uint8Array;
  devices: readonly DeviceKey[];
  mail: Omit<Enqueue, 'device' | 'dedupeKey' | 'idempotency'>;
}

/** Why a device does not get it. */
export type BroadcastRefusal = Exclude<MailOutcome['result'], 'queued'>;

export interface BroadcastOutcome {
  /** Now or before, once for each time that a device is among them. */
  queued: number;
  refused: { device: DeviceKey; reason: BroadcastRefusal }[];
}

/** How far a broadcast has come, for good: up to and with that device, in the order of device keys. */
export interface BroadcastProgress {
  broadcast: Uint8Array;
  after: string;
}
