import { integer } from '../../core/config/config-key.ts';

/** What devices send, and the schemas that it is held against. */
export const schemaKeys = {
  schemasPerFleetMax: integer(1_000, 1, 10_000, 'Schemas of one fleet.'),
  schemaBytesMax: integer(65_536, 256, 1_048_576, 'Largest JSON Schema.'),
  schemaStepsMax: integer(
    1_000,
    10,
    1_000_000,
    'Steps that checking one value of a body may take: a schema that could take more is refused.',
  ),
  schemaCheckMillisecondsMax: integer(
    1_000,
    10,
    60_000,
    'Longest check of one body. A schema whose check takes longer is disabled (503) until it is put again or the server restarts.',
  ),
  jsonDepthMax: integer(
    128,
    16,
    1_024,
    'Deepest nesting of JSON, in objects and lists. Bodies that are nested deeper are refused (D10).',
  ),
};
