import { integer, reloadable, type ValuesOf } from '../core/config/config-key.ts';

/** What operators may declare, and the schemas that bodies are checked against. */
export const declarationKeys = {
  fleetsMax: reloadable(
    integer(10_000, 1, 1_000_000, 'Fleets of this server; each worker keeps them in memory.'),
  ),
  schemasPerFleetMax: reloadable(integer(1_000, 1, 10_000, 'Schemas of one fleet.')),
  schemaBytesMax: integer(65_536, 256, 1_048_576, 'Largest JSON Schema. Raise it for generated ones.'),
  schemaStepsMax: reloadable(
    integer(
      1_000,
      10,
      1_000_000,
      'Steps that checking one value of a body may take: a schema that could take more is refused. Raise it for one that you trust.',
    ),
  ),
  schemaCheckMillisecondsMax: reloadable(
    integer(
      1_000,
      10,
      60_000,
      'Longest check of one body. A schema whose check takes longer is disabled (503) until it is put again or the server restarts. Raise it on a slow machine.',
    ),
  ),
  apiTokensMax: reloadable(integer(1_000, 1, 100_000, 'API tokens of this server, expired ones among them.')),
  claimTokensPerFleetMax: reloadable(integer(100, 1, 10_000, 'Claim tokens of one fleet.')),
};

export type DeclarationConfig = ValuesOf<typeof declarationKeys>;
