import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import type { ValidateFunction } from 'ajv';
import { accessKeys } from '../../admin-api/access-config.ts';
import { adminKeys } from '../../admin-api/config.ts';
import { schemaKeys } from '../../declarations/schemas/config.ts';
import { clientLimitKeys } from '../../device-api/limits/config.ts';
import { deviceKeys } from '../../domain/devices/config.ts';
import { mailKeys } from '../../domain/mail/config.ts';
import { logKeys } from '../../domain/records/config.ts';
import { actionKeys } from '../../features/actions/config.ts';
import { broadcastKeys } from '../../features/broadcasts/config.ts';
import { consumerKeys } from '../../features/consumers/config.ts';
import { forwarderKeys } from '../../features/forwarders/config.ts';
import { type StoreSetting, storeKeys } from '../../storage/config.ts';
import { OperatorError } from '../errors.ts';
import { traceKeys } from '../telemetry/config.ts';
import { tokenVariable } from '../token-variable.ts';
import { jsonOrText, numberOrText, readConfigFile } from './config-file.ts';
import { address, boolean, integer, type Key, text } from './config-key.ts';

const gibibyte = 1024 ** 3;
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
const logLevel: Key<(typeof logLevels)[number]> = {
  type: 'string',
  default: 'info',
  enum: logLevels,
  description: 'trace, debug, info, warn, error or silent.',
};

/** Every key with its default, bound and doc line; README's table and `fleetpost config` are made from it. */
const keys = {
  listen: address('127.0.0.1:8443', 'Address of the device API, HTTPS only. Port 0 takes any free port.'),
  ...adminKeys,
  data: text('./data', 'The data folder.', { minLength: 1 }),
  ...storeKeys,
  tlsCertFile: text(
    '',
    'Certificate chain, PEM. Empty: a self-signed one made in DATA/tls, for loopback only.',
  ),
  tlsKeyFile: text('', 'Private key of the certificate, PEM. ECDSA P-256 is the fastest.'),
  shards: integer(
    Math.min(availableParallelism(), 256),
    1,
    256,
    'Worker threads, each with a front end and one shard of the devices. Another number than the data folder has moves it first. Default: the number of cores, or what the data folder has.',
  ),
  mapBytesMax: integer(
    64 * gibibyte,
    16 * 1024 * 1024,
    16_384 * gibibyte,
    'Largest size of one shard on disk. Address space is reserved, not disk; a full shard answers 503 to writes.',
  ),
  diskFreeBytesMin: integer(
    64 * 1024 * 1024,
    1024 * 1024,
    1_024 * gibibyte,
    'Free disk that is left alone: with less, writes that add records are answered 503; with a quarter, all writes.',
  ),
  hostSuffix: text('', 'With device.example.com, the host FLEET.device.example.com names the fleet (D5).'),
  strictStatuses: boolean(false, "Answer only statuses of the specification's table (D8)."),
  bodyBytesMax: integer(65_536, 1_024, 65_536, 'Largest request body (D9).'),
  bodyTimeoutSeconds: integer(
    60,
    1,
    3_600,
    'Time a request body may take to arrive (D22); of an import of devices, its next piece.',
  ),
  ...clientLimitKeys,
  knownDevicesMax: integer(
    200_000,
    2,
    10_000_000,
    'Devices that each worker remembers after they showed their secret, some 300 bytes each.',
  ),
  requestTimeoutSeconds: integer(90, 2, 7_200, 'Time a request may take in all, its body included.'),
  streamKeepAliveSeconds: integer(30, 1, 300, 'Time between keep_alive events of a stream (D20).'),
  streamsPerDeviceMax: integer(4, 1, 64, 'Open event streams of one device; the oldest makes room (D21).'),
  streamsPerWorkerMax: integer(
    250_000,
    1,
    10_000_000,
    'Open event streams of one worker; one more is answered 503.',
  ),
  streamBufferBytesMax: integer(
    65_536,
    1_024,
    1_048_576,
    'Bytes that may wait for a stream that does not read (D21).',
  ),
  idempotencyWindowSeconds: integer(
    86_400,
    60,
    604_800,
    'Greatest age of an idempotency key, and how long it is remembered (D18).',
  ),
  idempotencySkewSeconds: integer(
    300,
    0,
    3_600,
    'How far ahead the time of an idempotency key may be (D18).',
  ),
  ...mailKeys,
  fleetsMax: integer(10_000, 1, 1_000_000, 'Fleets of this server; each worker keeps them in memory.'),
  ...schemaKeys,
  ...logKeys,
  ...traceKeys,
  ...actionKeys,
  ...accessKeys,
  ...consumerKeys,
  ...forwarderKeys,
  ...broadcastKeys,
  clockJumpGraceSeconds: integer(
    86_400,
    1,
    2_592_000,
    'How long a jump ahead of the clock must last before idempotency keys are forgotten by it, and how much of the time that the server was off counts for mail and the log.',
  ),
  activityFlushSeconds: integer(
    5,
    1,
    300,
    'How often last-seen times and fetch counts are written; a crash loses that much of them (D13).',
  ),
  ...deviceKeys,
  gatherMilliseconds: integer(
    4,
    0,
    50,
    'While a shard is busy, the least time from one commit to the next: more share each; 0 never waits.',
  ),
  shardQueueMax: integer(
    10_000,
    1,
    1_000_000,
    'Writes that may wait for one shard; one more is answered 503.',
  ),
  shardQueueBytesMax: integer(
    67_108_864,
    1_048_576,
    1_073_741_824,
    'Payload bytes of the writes that wait for one shard; more are answered 503.',
  ),
  stallMilliseconds: integer(
    1_000,
    100,
    60_000,
    'An event loop that stands still for longer is logged and counted.',
  ),
  stallEndSeconds: integer(
    30,
    2,
    3_600,
    'A thread that has stood still for this long ends the process, which is started again.',
  ),
  drainSeconds: integer(
    0,
    0,
    3_600,
    'How long the server says on /readyz that it is stopping, and goes on serving, before it stops.',
  ),
  shutdownSeconds: integer(10, 1, 12, 'Time requests in flight have to finish when the server stops.'),
  logLevel,
};

const configSchema = {
  type: 'object',
  properties: keys,
  required: Object.keys(keys),
  additionalProperties: false,
};

export type Config = { readonly [K in keyof typeof keys]: (typeof keys)[K]['default'] };
export type ConfigKey = keyof Config;
export type ConfigSource = 'default' | 'file' | 'environment' | 'flag';

export interface EffectiveConfig {
  values: Config;
  sources: Readonly<Record<ConfigKey, ConfigSource>>;
}

export const configKeys = Object.keys(keys) as ConfigKey[];

export function configDefault(key: ConfigKey): string | number | boolean | StoreSetting {
  return keys[key].default;
}

export function configDescription(key: ConfigKey): string {
  return keys[key].description;
}

/** `mailboxMailsMax` is `FLEETPOST_MAILBOX_MAILS_MAX`. */
export function environmentName(key: ConfigKey): string {
  return `FLEETPOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Text from the environment or a flag as the key's own type; what does not convert is left for the check. */
function fromText(key: ConfigKey, value: string): unknown {
  const fallback = configDefault(key);
  if (typeof fallback === 'number') return numberOrText(value);
  if (typeof fallback === 'boolean') return value === 'true' ? true : value === 'false' ? false : value;
  if (typeof fallback === 'object') return jsonOrText(value);
  return value;
}

let compiled: ValidateFunction | undefined;

/** Made when it is first needed: it takes half of the time in which a command starts that reads no configuration. */
function checkOf(): ValidateFunction {
  const { Ajv } = createRequire(import.meta.url)('ajv') as typeof import('ajv');
  // Not held against JSON Schema's own schema: it is ours, and to compile that takes as long as all the rest.
  const keywords: readonly (keyof Key<unknown>)[] = ['patternText'];
  const options = { allErrors: true, strictRequired: false, validateSchema: false, keywords: [...keywords] };
  compiled ??= new Ajv(options).compile(configSchema);
  return compiled;
}

function refuse(
  errors: ValidateFunction['errors'],
  values: Record<string, unknown>,
  origin: (key: string) => string,
): never {
  const [first] = errors ?? [];
  if (first === undefined) throw new OperatorError('The configuration is not valid.');
  if (first.keyword === 'additionalProperties' && first.instancePath === '') {
    const key = String(first.params.additionalProperty);
    throw new OperatorError(`Configuration: there is no key "${key}" (from ${origin(key)}).`);
  }
  const [, key = '', ...inside] = first.instancePath.split('/');
  if (key === 'store') {
    // Without the value: there are passwords in it.
    const where = ['store', ...inside].join('.');
    throw new OperatorError(
      `Configuration: ${where} ${first.message ?? 'is not valid'} (from ${origin(key)}): it is {"engine":"lmdb"} or {"engine":"postgres","shards":["postgres://…"]}.`,
    );
  }
  const allowed =
    key === 'logLevel'
      ? 'must be one of trace, debug, info, warn, error, silent'
      : first.keyword === 'pattern'
        ? `must be ${(keys as Record<string, Key<unknown>>)[key]?.patternText ?? 'of another form'}`
        : (first.message ?? 'is not valid');
  throw new OperatorError(
    `Configuration: ${key} ${allowed}, not ${JSON.stringify(values[key])} (from ${origin(key)}).`,
  );
}

/**
 * Defaults, then the file, then `FLEETPOST_*`, then flags; checked once and frozen.
 * @throws OperatorError naming the key of the first unknown key or bad value, and where it came from.
 */
export function loadConfig(
  filePath: string | undefined,
  environment: NodeJS.ProcessEnv,
  flags: Partial<Record<ConfigKey, string>>,
): EffectiveConfig {
  const file = filePath === undefined ? {} : readConfigFile(filePath);
  const values: Record<string, unknown> = {};
  const sources: Record<string, ConfigSource> = {};
  const set = (key: string, value: unknown, source: ConfigSource): void => {
    values[key] = value;
    sources[key] = source;
  };
  for (const key of configKeys) set(key, configDefault(key), 'default');
  for (const [key, value] of Object.entries(file)) set(key, value, 'file');
  const names = new Map(configKeys.map((key) => [environmentName(key), key]));
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('FLEETPOST_') || value === undefined) continue;
    // Of the commands that talk to a server.
    if (name === tokenVariable) continue;
    const key = names.get(name);
    if (key === undefined) throw new OperatorError(`Configuration: there is no key for ${name}.`);
    set(key, fromText(key, value), 'environment');
  }
  for (const [key, value] of Object.entries(flags)) {
    if (value !== undefined) set(key, fromText(key as ConfigKey, value), 'flag');
  }
  const check = checkOf();
  if (!check(values)) refuse(check.errors, values, (key) => sources[key] ?? 'file');
  return {
    values: Object.freeze(values) as Config,
    sources: Object.freeze(sources) as Record<ConfigKey, ConfigSource>,
  };
}
