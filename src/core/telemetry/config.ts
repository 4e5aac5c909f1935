import { type Key, reloadable, text, type ValuesOf } from '../config/config-key.ts';

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
const logLevel: Key<(typeof logLevels)[number]> = {
  type: 'string',
  default: 'info',
  enum: logLevels,
  description: 'trace, debug, info, warn, error or silent.',
};

/** What is logged, and where requests can be followed from one service to the next. */
export const telemetryKeys = {
  logLevel: reloadable(logLevel),
  traceUrl: text(
    '',
    'Where spans of sampled requests go, OTLP/HTTP in JSON: http://127.0.0.1:4318/v1/traces, say. Empty: no traceparent is looked at.',
    {
      pattern: '^(https?://[^\\s]+)?$',
      patternText: 'a URL that begins with http:// or https://, or empty',
    },
  ),
};

export type TelemetryConfig = ValuesOf<typeof telemetryKeys>;
