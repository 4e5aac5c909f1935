import type { DeviceKey } from '../core/identity.ts';
import type { Presence } from './devices/device-query.ts';
import type { Announcement } from './mail/mail.ts';

/** Receives the announcements of one stream, or of one request that waits for mail. Its methods must neither throw nor block. */
export interface StreamSink {
  /** Set for a request that waits (D31), of which a device has one: it neither displaces streams nor is displaced by them. */
  readonly waits?: boolean;
  announce(announcement: Announcement): void;
  /** An old secret of the device has ended: the stream must end if it was opened with that one. */
  recheck(): void;
  /** The stream must end: replaced by a newer one, or the device was disabled, deleted or re-keyed (D21). */
  end(): void;
}

/** The open event streams and waiting requests of a shard's devices. */
export interface ShardStreams {
  readonly presence: Presence;
  /** Registers the stream before settling, so that no mail announced later is missed. */
  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void>;
}
