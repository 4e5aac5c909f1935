import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Ajv, type ErrorObject } from 'ajv';
import { adminKeys } from '../../admin-api/config.ts';
import { isClientVariable } from '../../core/config/client-variables.ts';
import {
  type FixedOf,
  integer,
  type Key,
  type SettingsOf,
  type ValuesOf,
} from '../../core/config/config-key.ts';
import { LiveSettings } from '../../core/config/settings.ts';
import { suggestionFor } from '../../core/config/suggestion.ts';
import { OperatorError } from '../../core/errors.ts';
import { telemetryKeys } from '../../core/telemetry/config.ts';
import { declarationKeys } from '../../declarations/config.ts';
import { deviceApiKeys } from '../../device-api/config.ts';
import { domainKeys } from '../../domain/config.ts';
import { actionKeys } from '../../features/actions/config.ts';
import { auditKeys } from '../../features/audit/config.ts';
import { backupKeys } from '../../features/backups/config.ts';
import { broadcastKeys } from '../../features/broadcasts/config.ts';
import { claimingKeys } from '../../features/claiming/config.ts';
import { consumerKeys } from '../../features/consumers/config.ts';
import { forwarderKeys } from '../../features/forwarders/config.ts';
import { type StoreSetting, storageKeys } from '../../storage/config.ts';
import { threadKeys } from '../../threads/config.ts';
import { certificateKeys } from '../certificates/config.ts';

/** Parses JSON, or returns the text; validated later. */
function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Parses a number, or returns the text. */
function numberOrText(value: string): unknown {
  const number = Number(value);
  return value.trim() === '' || !Number.isFinite(number) ? value : number;
}

/** @throws OperatorError if it is not a JSON object. */
function readConfigFile(path: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new OperatorError(`The configuration file ${path} cannot be read: ${(error as Error).message}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new OperatorError(`The configuration file ${path} must hold one JSON object.`);
  }
  return parsed as Record<string, unknown>;
}

/** Every key with its default, bounds and help, grouped by reader; source of the reference and `fleetpost config`. */
const keys = {
  ...deviceApiKeys,
  ...certificateKeys,
  ...adminKeys,
  ...storageKeys,
  ...threadKeys,
  ...domainKeys,
  ...declarationKeys,
  ...actionKeys,
  ...consumerKeys,
  ...forwarderKeys,
  ...broadcastKeys,
  ...auditKeys,
  ...backupKeys,
  ...claimingKeys,
  drainSeconds: integer(
    { default: 0, minimum: 0, maximum: 3_600, isReloadable: true },
    'Drain time. The server keeps serving for this long before it stops, while /readyz says that it is stopping.',
  ),
  ...telemetryKeys,
};

/** All values, as loaded. */
export type Config = ValuesOf<typeof keys>;
/** The configuration of a running server. */
export type RunningConfig = FixedOf<typeof keys> & {
  readonly settings: LiveSettings<SettingsOf<typeof keys>>;
};
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

/** True if SIGHUP can change a key. */
export function isReloadable(key: ConfigKey): key is keyof SettingsOf<typeof keys> {
  return 'isReloadable' in keys[key];
}

/** Divides values into those that are fixed from here on and the settings. */
export function runningConfig(values: Config): RunningConfig {
  const pick = (isWanted: (key: ConfigKey) => boolean): object =>
    Object.fromEntries(configKeys.filter(isWanted).map((key) => [key, values[key]]));
  const settings = new LiveSettings(pick(isReloadable) as SettingsOf<typeof keys>);
  return Object.freeze({ ...(pick((key) => !isReloadable(key)) as FixedOf<typeof keys>), settings });
}

export function configDescription(key: ConfigKey): string {
  return keys[key].description;
}

/** Returns what a key may be set to. */
export function configType(key: ConfigKey): Readonly<Key<unknown>> {
  return keys[key];
}

/** Returns a key's environment variable: `FLEETPOST_MAILBOX_MAILS_MAX` for `mailboxMailsMax`. */
export function environmentName(key: ConfigKey): string {
  return `FLEETPOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Converts text from the environment or a flag to the key's type; leaves invalid text for validation. */
function fromText(key: ConfigKey, value: string): unknown {
  const fallback = configDefault(key);
  if (typeof fallback === 'number') return numberOrText(value);
  if (typeof fallback === 'boolean') return value === 'true' ? true : value === 'false' ? false : value;
  if (typeof fallback === 'object') return jsonOrText(value);
  return value;
}

function meant(name: string, known: Iterable<string>): string {
  const suggestion = suggestionFor(name, known);
  return suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
}

// Not validated against the meta-schema: they are our own, and compiling that takes longer than all the rest.
const keywords: readonly (keyof Key<unknown>)[] = ['patternText', 'isReloadable'];
const ajvOptions = { allErrors: true, validateSchema: false, keywords: [...keywords] };

/** Judges what was set, and nothing else: to compile the schemas of all keys took a tenth of a start. */
function errorOf(given: Readonly<Record<string, unknown>>): ErrorObject | undefined {
  const known = configKeys.filter((key) => key in given);
  const properties = Object.fromEntries(known.map((key) => [key, keys[key]]));
  const validate = new Ajv(ajvOptions).compile({ type: 'object', properties, additionalProperties: false });
  validate(given);
  return validate.errors?.[0];
}

function refuse(
  first: ErrorObject,
  values: Readonly<Record<string, unknown>>,
  origin: (key: string) => string,
): never {
  if (first.keyword === 'additionalProperties' && first.instancePath === '') {
    const key = String(first.params.additionalProperty);
    throw new OperatorError(
      `Configuration: there is no key "${key}" (from ${origin(key)}).${meant(key, configKeys)}`,
    );
  }
  const [, key = '', ...inside] = first.instancePath.split('/');
  if (key === 'store') {
    // Without the value, which contains passwords.
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
 * Merges defaults, the file, `FLEETPOST_*` and flags, in this order; validated once and frozen.
 * @throws OperatorError naming the first unknown key or invalid value, and its source.
 */
export function loadConfig(
  filePath: string | undefined,
  environment: NodeJS.ProcessEnv,
  flags: Partial<Record<ConfigKey, string>>,
): EffectiveConfig {
  const file = filePath === undefined ? {} : readConfigFile(filePath);
  const given: Record<string, unknown> = {};
  const sources: Record<string, ConfigSource> = {};
  for (const key of configKeys) sources[key] = 'default';
  const set = (key: string, value: unknown, source: ConfigSource): void => {
    given[key] = value;
    sources[key] = source;
  };
  for (const [key, value] of Object.entries(file)) {
    // Relative to the file: the same wherever the server is started from.
    const isPath = key === 'data' && typeof value === 'string' && value !== '';
    set(key, isPath ? resolve(dirname(filePath ?? ''), value) : value, 'file');
  }
  const names = new Map(configKeys.map((key) => [environmentName(key), key]));
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('FLEETPOST_') || value === undefined) continue;
    if (isClientVariable(name, value)) continue;
    const key = names.get(name);
    if (key === undefined) {
      throw new OperatorError(`Configuration: there is no key for ${name}.${meant(name, names.keys())}`);
    }
    set(key, fromText(key, value), 'environment');
  }
  for (const [key, value] of Object.entries(flags)) {
    if (value !== undefined) set(key, fromText(key as ConfigKey, value), 'flag');
  }
  const error = errorOf(given);
  if (error !== undefined) refuse(error, given, (key) => sources[key] ?? 'file');
  const defaults = Object.fromEntries(configKeys.map((key) => [key, configDefault(key)]));
  return {
    values: Object.freeze({ ...defaults, ...given }) as Config,
    sources: Object.freeze(sources) as Record<ConfigKey, ConfigSource>,
  };
}
