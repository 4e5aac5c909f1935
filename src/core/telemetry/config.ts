import { text } from '../config/config-key.ts';

/** Where requests can be followed from one service to the next. */
export const traceKeys = {
  traceUrl: text(
    '',
    'Where spans of sampled requests go, OTLP/HTTP in JSON: http://127.0.0.1:4318/v1/traces, say. Empty: no traceparent is looked at.',
    {
      pattern: '^(https?://[^\\s]+)?$',
      patternText: 'a URL that begins with http:// or https://, or empty',
    },
  ),
};
