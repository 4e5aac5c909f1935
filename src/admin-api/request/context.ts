import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  ContextConfigDefault,
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  FastifySchema,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
} from 'fastify';
import { ApiError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdPattern, deviceKeyOf } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import type { SpanBuffer } from '../../core/telemetry/trace.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { ClaimTokens } from '../../declarations/claim-tokens.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Tokens } from '../../declarations/tokens.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import type { Shard } from '../../domain/shard.ts';
import type { ActionService } from '../../features/actions/service.ts';
import type { BroadcastService } from '../../features/broadcasts/service.ts';
import type { ConsumerService } from '../../features/consumers/service.ts';
import type { ForwarderService } from '../../features/forwarders/service.ts';
import type { RecordService } from '../../features/records/service.ts';
import type { AdminApiConfig } from '../config.ts';

/** One backup: the one under way, or else the last one. */
export interface Backup {
  folder: string;
  state: 'running' | 'done' | 'failed';
  startedAtMs: number;
  endedAtMs: number | undefined;
  bytes: number;
  /** About, until it is done. */
  bytesTotal: number;
  /** Why it failed. */
  reason: string | undefined;
}

export interface Backups {
  /** @throws ApiError backup_running, unusable_folder. */
  start(folder: string): Backup;
  /** Undefined when there was none since the server started. */
  last(): Backup | undefined;
}

/** What the watching of a server needs to know of its shards and devices. */
export interface ActivityView {
  /** What each shard holds, as its store counts it. */
  sizes(): readonly { bytes: number; logBytes: number; devices: number; mails: number }[];
  /** Devices that ask most, about, over all workers; the loudest first. */
  talkers(): Promise<{ device: DeviceKey; requestsPerSecond: number }[]>;
}

/** The token in DATA/admin.json, for whoever can read the data folder. */
export interface Bootstrap {
  /** `off`: it is that token, and it is not accepted. */
  check(bearer: string): 'accepted' | 'off' | 'unknown';
}

/** Everything the admin server is given. */
export interface AdminContext {
  config: AdminApiConfig;
  /** Who may use `/admin/v1`. */
  tokens: Tokens;
  bootstrap: Bootstrap;
  audit: AuditLog;
  claimTokens: ClaimTokens;
  registry: Registry;
  /** The registry's fleets with compiled schemas, for checking mail. */
  fleets: Fleets;
  actions: ActionService;
  forwarders: ForwarderService;
  records: RecordService;
  consumers: ConsumerService;
  broadcasts: BroadcastService;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  /** One a worker; worker k owns shard k. */
  metrics: readonly WorkerMetrics[];
  /** Of the device API. */
  connections: { readonly open: number; readonly refused: number };
  /** Writes under way to a shard. */
  queueDepth(shard: number): number;
  /** Devices of a shard that have open event streams. */
  connectedOf(shard: number): number;
  /** Devices that a shard holds. */
  devicesOf(shard: number): number;
  /** How often, and how long in all, the event loop of each thread stood still. */
  stalls(): { thread: string; stalls: { count: number; seconds: number } }[];
  /** Why devices should not be sent here now; empty when they should. */
  notReady(): readonly NotReady[];
  activity: ActivityView;
  /** Undefined where nothing is traced. */
  traces: { readonly spans: SpanBuffer; readonly exported: number; readonly dropped: number } | undefined;
  backups: Backups;
  log: Log;
}

/** Fastify with routes typed by their TypeBox schemas. */
export type AdminApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What answers a route: the route's schema types the request, and the answer. */
export type Handler<S extends FastifySchema> = RouteHandlerMethod<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  RouteGenericInterface,
  ContextConfigDefault,
  S,
  TypeBoxTypeProvider,
  FastifyBaseLogger
>;

/**
 * The device a path names. The fleet is known to exist then; whether the device does, its shard says.
 * @throws ApiError fleet_not_found; device_not_found for an id that no device can have (D1).
 */
export function deviceOfRequest(
  context: AdminContext,
  path: { fleet_id: string; device_id: string },
): DeviceKey {
  const { fleet } = context.registry.fleet(path.fleet_id);
  if (!deviceIdPattern.test(path.device_id)) throw new ApiError('device_not_found');
  return deviceKeyOf(fleet.fleetId, path.device_id);
}

/** As the OpenAPI document has it: the router wants a colon doubled that begins no name. */
export function routeOf({ routeOptions }: FastifyRequest): string | undefined {
  return routeOptions.url?.replaceAll('::', ':');
}
