import { type ConfigOf, integer } from '../core/config/config-key.ts';

/** Limits on declarations, and on schemas that bodies are checked against. */
export const declarationKeys = {
  fleetsMax: integer(
    { default: 10_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Maximum fleets of this server; each worker keeps them in memory.',
  ),
  schemasPerFleetMax: integer(
    { default: 1_000, minimum: 1, maximum: 10_000, isReloadable: true },
    'Maximum schemas per fleet.',
  ),
  schemaBytesMax: integer(
    { default: 65_536, minimum: 256, maximum: 1_048_576 },
    'Maximum size of a JSON Schema. Raise it for generated ones.',
  ),
  schemaStepsMax: integer(
    { default: 1_000, minimum: 10, maximum: 1_000_000, isReloadable: true },
    'Maximum steps for checking one value of a body. A schema that could take more is refused. Raise it for one that you trust.',
  ),
  schemaPatternStatesMax: integer(
    { default: 10_000, minimum: 100, maximum: 1_000_000, isReloadable: true },
    'Maximum states of all patterns of a schema, with their repetitions written out: compiling takes time and memory for each. A schema that could have more is refused, and disabled if it is stored.',
  ),
  schemaChecksMax: integer(
    { default: 100, minimum: 1, maximum: 10_000, isReloadable: true },
    'Maximum schemas that wait to be checked. Beyond it, or beyond the share of a fleet, storing and checking one gets 503.',
  ),
  schemaCheckMillisecondsMax: integer(
    { default: 1_000, minimum: 10, maximum: 60_000, isReloadable: true },
    'Maximum time for checking one body. A schema whose check takes longer is disabled (503) until it is put again or the server restarts. Raise it on a slow machine.',
  ),
  schemaCheckMillisecondsPerSecondMax: integer(
    { default: 10, minimum: 0, maximum: 1_000, isReloadable: true },
    'Maximum time that one thread spends each second on schemas of one fleet beyond what a check usually takes (0.1 ms, of a record in a sync 0.01 ms, and 0.02 ms a kilobyte), saved up for 100 s. Beyond it, bodies for schemas whose checks took long get 503. As much again for parsing beyond 0.03 ms a kilobyte: beyond it, bodies over 1,024 bytes get 503. Raise it for large bodies with many patterns or many different names of members. 0: no limit.',
  ),
  apiTokensMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum API tokens of this server, including expired ones.',
  ),
  claimTokensPerFleetMax: integer(
    { default: 100, minimum: 1, maximum: 10_000, isReloadable: true },
    'Maximum claim tokens per fleet.',
  ),
};

export type DeclarationConfig = ConfigOf<typeof declarationKeys>;
