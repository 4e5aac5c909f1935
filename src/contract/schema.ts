import { type Static, Type } from 'typebox';
import { closedObject, nullable } from './document.ts';

export const schemaKind = Type.Enum(['datapoint', 'message', 'mail']);
export const schemaDocument = Type.Object({
  kind: schemaKind,
  name: Type.String(),
  disabled: nullable('string', {
    description: 'Why bodies for it are answered 503, until it is stored again or the server restarts.',
  }),
});
export type SchemaDocument = Static<typeof schemaDocument>;

export const schemaCheckBody = closedObject(
  {
    kind: schemaKind,
    name: Type.Optional(Type.String({ description: 'Of a stored schema.' })),
    schema: Type.Optional(Type.String({ description: 'Text of a schema, in place of a stored one.' })),
    sample: Type.Optional(
      Type.String({ description: 'Text of a body, as a device or an operator would send it.' }),
    ),
  },
  { description: 'Has either `name` or `schema`.' },
);
export type SchemaCheckBody = Static<typeof schemaCheckBody>;
/** The cost of a schema, and whether a body matches it. */
export const schemaCheckDocument = Type.Object({
  fault: nullable('string', { description: 'Why the schema would be refused; null if it would be stored.' }),
  steps: nullable('integer', { description: 'What checking one value may take at most.' }),
  steps_at: nullable('string', {
    description: 'JSON Pointer to the value that may take it; `*` is any of its items or members.',
  }),
  steps_max: Type.Integer({ description: 'What a schema may take at most (schemaStepsMax).' }),
  sample: Type.Union(
    [
      Type.Object({
        matches: Type.Boolean(),
        error: nullable('string', { description: 'What it would be refused with.' }),
        msg: nullable('string'),
        errors: Type.Array(Type.Object({ path: Type.String(), msg: Type.String() })),
      }),
      Type.Null(),
    ],
    { description: 'Null without a sample, or if the schema would be refused.' },
  ),
});
export type SchemaCheckDocument = Static<typeof schemaCheckDocument>;
