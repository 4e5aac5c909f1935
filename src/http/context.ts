import type { Config } from '../core/config.ts';
import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/log.ts';
import type { WorkerMetrics } from '../core/metrics.ts';
import type { SpanBuffer } from '../core/trace.ts';
import type { Claim, ClaimedDevice } from '../registry/claim-token.ts';
import type { Fleets } from '../registry/fleet.ts';
import type { Shard } from '../shard/shard.ts';
import type { ActivityNotes } from './activity.ts';
import type { AnonymousRate } from './anonymous-rate.ts';
import type { ConnectionGate } from './connection-gate.ts';
import type { EventStreams } from './event-streams.ts';
import type { KnownDevices } from './known-device.ts';
import type { Lockouts } from './lockouts.ts';
import type { RequestRates } from './request-rates.ts';
import type { Talkers } from './talkers.ts';

/** Everything a front end is given. Where a device lives is known behind `shards.of` alone. */
export interface HttpContext {
  config: Config;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard };
  known: KnownDevices;
  connections: ConnectionGate;
  lockouts: Lockouts;
  rates: RequestRates;
  anonymous: AnonymousRate;
  activity: ActivityNotes;
  streams: EventStreams;
  /** Devices that register themselves: the same on whichever thread they ask. */
  claims: { claim(claim: Claim): Promise<ClaimedDevice> };
  talkers: Talkers;
  /** Undefined where nothing is traced. */
  spans: SpanBuffer | undefined;
  metrics: WorkerMetrics;
  /** Tells whoever watches this thread that it goes on, in the midst of a long turn. */
  beat: () => void;
  log: Log;
}
