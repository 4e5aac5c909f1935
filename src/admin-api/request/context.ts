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
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Tokens } from '../../declarations/tokens.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import type { LockoutList } from '../../domain/devices/lockout.ts';
import type { RefusalLog } from '../../domain/devices/refusals.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import type { Shard } from '../../domain/shard.ts';
import type { ActionDeclarations } from '../../features/actions/control.ts';
import type { ActionDeadLetter, ActionWork } from '../../features/actions/service.ts';
import type { BroadcastService } from '../../features/broadcasts/service.ts';
import type { ConsumerService } from '../../features/consumers/service.ts';
import type { DeadLetterService } from '../../features/dead-letters/service.ts';
import type { ForwarderDeclarations } from '../../features/forwarders/control.ts';
import type { ForwarderDeadLetter, ForwarderWork } from '../../features/forwarders/service.ts';
import type { RecordService } from '../../features/records/service.ts';
import type { DeviceSeries } from '../../features/series/device-series.ts';
import type { AdminApiConfig } from '../config.ts';
import type { ConsoleCodes } from '../console/console-codes.ts';
import type { ConsoleFiles } from '../console/console-files.ts';

/** A backup, running or ended. */
export interface Backup {
  folder: string;
  state: 'running' | 'done' | 'failed';
  startedAtMs: number;
  endedAtMs: number | undefined;
  bytes: number;
  /** An estimate until it is done. */
  bytesTotal: number;
  /** Set if it failed. */
  reason: string | undefined;
  /** Number of older backups that were removed after it. */
  removed: number;
}

export interface BackupRequest {
  /** Absent: under its time in `backupFolder`. */
  folder?: string;
  /** Number of backups to keep in `backupFolder`, this one included. */
  keep?: number;
}

export interface Backups {
  /** @throws ApiError backup_running, unusable_folder. */
  start(request: BackupRequest): Backup;
  /** Returns the running or the last backup, also of earlier starts; undefined if there was none. */
  last(): Backup | undefined;
  /** When the last whole backup was completed, 0 for never; undefined where there are none, in databases. */
  readonly completedAtMs: number | undefined;
}

/** A key of the configuration in use. */
export interface ConfiguredKey {
  key: string;
  /** Passwords are masked. */
  value: string | number | boolean | Record<string, unknown>;
  source: 'default' | 'file' | 'environment' | 'flag';
  environment: string;
  description: string;
  isReloadable: boolean;
  /** True if it was given another value that waits for a restart. */
  isPending: boolean;
}

/** Live figures of shards and devices, for `/top`. */
export interface ActivityView {
  /** Sizes of each shard, as its store counts them. */
  sizes(): readonly { bytes: number; logBytes: number; devices: number; mails: number }[];
  /** Free bytes of the data folder's disk; undefined where it is not watched, and on databases. */
  diskFreeBytes(): number | undefined;
  /** Estimates the busiest devices over all workers, busiest first. */
  topTalkers(): Promise<{ device: DeviceKey; requestsPerSecond: number }[]>;
}

/** The token in DATA/admin.json, for those who can read the data folder. */
export interface Bootstrap {
  readonly isOn: boolean;
  /** Returns `off` if the bearer is that token but it is turned off. */
  check(bearer: string): 'accepted' | 'off' | 'unknown';
}

/** Everything the admin server needs. */
export interface AdminContext {
  config: AdminApiConfig;
  /** The whole configuration, to be shown. */
  configuration: { list(): ConfiguredKey[] };
  /** Host names that the listener answers to, besides loopback and its own address (D27). */
  allowedHosts(): readonly string[];
  /** API tokens, for `/admin/v1`. */
  tokens: Tokens;
  bootstrap: Bootstrap;
  audit: AuditLog;
  claimTokens: ClaimTokens;
  hold: DeclaredHold;
  registry: Registry;
  /** The registry's fleets with compiled schemas, for checking mail. */
  fleets: Fleets;
  actions: ActionDeclarations;
  actionWork: ActionWork;
  actionDeadLetters: DeadLetterService<ActionDeadLetter, number>;
  forwarders: ForwarderDeclarations;
  forwarderWork: ForwarderWork;
  forwarderDeadLetters: DeadLetterService<ForwarderDeadLetter, Buffer>;
  records: RecordService;
  series: DeviceSeries;
  consumers: ConsumerService;
  broadcasts: BroadcastService;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  /** One per worker; worker k owns shard k. */
  metrics: readonly WorkerMetrics[];
  /** Connections of the device API. */
  connections: { readonly open: number; readonly refused: number };
  /** Writes in flight to a shard. */
  queueDepth(shard: number): number;
  /** Devices of a shard that have open event streams. */
  connectedOf(shard: number): number;
  /** Devices that a shard holds. */
  devicesOf(shard: number): number;
  /** Number and total duration of each thread's event-loop stalls. */
  stalls(): { thread: string; stalls: { count: number; seconds: number } }[];
  /** Reasons why devices should not be routed here now; empty if ready. */
  notReady(): readonly NotReady[];
  activity: ActivityView;
  lockouts: LockoutList;
  refusals: RefusalLog;
  watched: WatchedDevices;
  /** Versions of the program on all nodes. */
  programVersions(): Promise<readonly string[]>;
  /** One for each listener in HTTPS. */
  certificates: readonly { readonly listener: string; readonly endMs: number }[];
  /** Undefined if no certificate is obtained from an ACME directory. */
  acme: { readonly failures: number } | undefined;
  /** Undefined if tracing is off. */
  traces: { readonly spans: SpanBuffer; readonly exported: number; readonly dropped: number } | undefined;
  backups: Backups;
  /** Undefined if the console is off. */
  consoleFiles: ConsoleFiles | undefined;
  consoleCodes: ConsoleCodes;
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

/** A route handler, with request and answer typed by the route's schema. */
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
 * Returns the device key of a path. Checks that the fleet exists; whether the device does, its shard knows.
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

/** Returns the route as in the OpenAPI document: the router doubles a colon that starts no parameter. */
export function routeOf({ routeOptions }: FastifyRequest): string | undefined {
  return routeOptions.url?.replaceAll('::', ':');
}
