import { type Config, type ConfigKey, configKeys } from './config.ts';

/**
 * The keys that SIGHUP can change: those that are read where they are used, each time. All others are built
 * into something at the start.
 */
export const reloadableKeys: readonly ConfigKey[] = [
  'tlsCertFile',
  'tlsKeyFile',
  'hostSuffix',
  'bodyTimeoutSeconds',
  'unauthorizedMax',
  'unauthorizedWindowSeconds',
  'lockoutSecondsMax',
  'deviceRequestsPerSecondMax',
  'deviceBytesPerSecondMax',
  'fleetRequestsPerSecondMax',
  'anonymousRequestsPerSecondMax',
  'requestTimeoutSeconds',
  'streamsPerWorkerMax',
  'streamBufferBytesMax',
  'idempotencySkewSeconds',
  'mailboxMailsMax',
  'mailLifeSeconds',
  'activeSeconds',
  'secretGraceSecondsMax',
  'fleetsMax',
  'schemasPerFleetMax',
  'schemaStepsMax',
  'schemaCheckMillisecondsMax',
  'jsonDepthMax',
  'logRetentionSeconds',
  'logBytesMax',
  'actionCpuMilliseconds',
  'actionWallMilliseconds',
  'actionMemoryBytesMax',
  'actionMailsMax',
  'actionMailBytesMax',
  'actionRunsPerSecondMax',
  'actionQueueMax',
  'actionDevicesBehindMax',
  'actionAttemptsMax',
  'actionRetryMilliseconds',
  'actionParkedRunsMax',
  'actionRunsKept',
  'actionLogLinesKept',
  'actionStateKeysMax',
  'actionStateValueBytesMax',
  'actionSourceBytesMax',
  'actionsPerFleetMax',
  'actionVersionsKept',
  'adminHosts',
  'bootstrapToken',
  'apiTokensMax',
  'broadcastMailsPerSecondMax',
  'broadcastsRunningMax',
  'broadcastsPerFleetMax',
  'broadcastRefusalsMax',
  'broadcastRetentionSeconds',
  'auditEntriesMax',
  'auditRefusalsPerMinuteMax',
  'tokenChangesPerSecondMax',
  'claiming',
  'claimTokensPerFleetMax',
  'claimsQueueMax',
  'shardQueueMax',
  'shardQueueBytesMax',
  'stallMilliseconds',
  'stallEndSeconds',
  'drainSeconds',
  'shutdownSeconds',
  'logLevel',
];

/** What a configuration that was read again asks to be otherwise. */
export interface ConfigChange {
  /** Can be had at once. */
  values: Partial<Config>;
  /** Need a restart. */
  fixedKeys: readonly ConfigKey[];
}

export function changeOf(before: Config, after: Config): ConfigChange {
  const changed = configKeys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  const reloadable = changed.filter((key) => reloadableKeys.includes(key));
  return {
    values: Object.fromEntries(reloadable.map((key) => [key, after[key]])),
    fixedKeys: changed.filter((key) => !reloadable.includes(key)),
  };
}
