import { type ConfigOf, type Key, text } from '../config/config-key.ts';

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
const logLevel: Key<(typeof logLevels)[number]> & { isReloadable: true } = {
  type: 'string',
  default: 'info',
  enum: logLevels,
  description: 'Log level: trace, debug, info, warn, error or silent.',
  isReloadable: true,
};

/** Logging and tracing. */
export const telemetryKeys = {
  logLevel,
  traceUrl: text(
    '',
    'URL that spans of sampled requests are exported to, OTLP/HTTP in JSON: http://127.0.0.1:4318/v1/traces, say. Empty: traceparent is ignored.',
    {
      pattern: '^(https?://[^\\s]+)?$',
      patternText: 'a URL that begins with http:// or https://, or empty',
    },
  ),
};

export type TelemetryConfig = ConfigOf<typeof telemetryKeys>;
