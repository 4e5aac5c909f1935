import { type ConfigOf, integer, reloadable } from '../core/config/config-key.ts';

/** Limits on declarations, and on schemas that bodies are checked against. */
export const declarationKeys = {
  fleetsMax: reloadable(
    integer(10_000, 1, 1_000_000, 'Maximum fleets of this server; each worker keeps them in memory.'),
  ),
  schemasPerFleetMax: reloadable(integer(1_000, 1, 10_000, 'Maximum schemas per fleet.')),
  schemaBytesMax: integer(
    65_536,
    256,
    1_048_576,
    'Maximum size of a JSON Schema. Raise it for generated ones.',
  ),
  schemaStepsMax: reloadable(
    integer(
      1_000,
      10,
      1_000_000,
      'Maximum steps for checking one value of a body. A schema that could take more is refused. Raise it for one that you trust.',
    ),
  ),
  schemaCheckMillisecondsMax: reloadable(
    integer(
      1_000,
      10,
      60_000,
      'Maximum time for checking one body. A schema whose check takes longer is disabled (503) until it is put again or the server restarts. Raise it on a slow machine.',
    ),
  ),
  apiTokensMax: reloadable(
    integer(1_000, 1, 100_000, 'Maximum API tokens of this server, including expired ones.'),
  ),
  claimTokensPerFleetMax: reloadable(integer(100, 1, 10_000, 'Maximum claim tokens per fleet.')),
};

export type DeclarationConfig = ConfigOf<typeof declarationKeys>;
