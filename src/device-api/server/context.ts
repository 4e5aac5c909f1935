import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { SpanBuffer } from '../../core/telemetry/trace.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { ClaimedDevice, ClaimRequest } from '../../declarations/claim-token.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Refusals } from '../../domain/devices/refusals.ts';
import type { Shard } from '../../domain/shard.ts';
import type { ActivityNotes } from '../auth/activity.ts';
import type { AnonymousRate } from '../auth/anonymous-rate.ts';
import type { DeviceCache } from '../auth/cached-device.ts';
import type { Lockouts } from '../auth/lockouts.ts';
import type { DeviceApiConfig } from '../config.ts';
import type { EventStreams } from '../events/event-streams.ts';
import type { ConnectionGate } from '../limits/connection-gate.ts';
import type { FleetPulses } from '../limits/fleet-pulse.ts';
import type { RequestRates } from '../limits/request-rates.ts';
import type { TopTalkers } from '../limits/top-talkers.ts';

/** Everything a front end needs. Only `shards.of` knows where a device lives. */
export interface HttpContext {
  config: DeviceApiConfig;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard };
  deviceCache: DeviceCache;
  connections: ConnectionGate;
  lockouts: Lockouts;
  rates: RequestRates;
  anonymous: AnonymousRate;
  activity: ActivityNotes;
  streams: EventStreams;
  /** Self-registration of devices; works on every thread. */
  claims: { claim(claim: ClaimRequest): Promise<ClaimedDevice> };
  topTalkers: TopTalkers;
  pulses: FleetPulses;
  refusals: Refusals;
  /** Undefined if tracing is off. */
  spans: SpanBuffer | undefined;
  metrics: WorkerMetrics;
  /** Tells the event-loop watchdog, during a long turn, that this thread makes progress. */
  heartbeat: () => void;
  log: Log;
}
