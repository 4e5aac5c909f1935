import { type Static, Type } from 'typebox';
import { bytesBody, closedObject, listOf, nullable } from './document.ts';
import { declareRoutes, noDocument } from './routes/route.ts';

const schemaKind = Type.Enum(['datapoint', 'message', 'mail', 'reply']);
const schemaDocument = Type.Object({
  kind: schemaKind,
  name: Type.String(),
  disabled: nullable('string', {
    description: 'Why bodies for it are answered 503, until it is stored again or the server restarts.',
  }),
});
export type SchemaDocument = Static<typeof schemaDocument>;

const schemaCheckBody = closedObject(
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
/** The cost of a schema, and whether a body matches it. */
const schemaCheckDocument = Type.Object({
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

const params = { kind: schemaKind };

/** `/fleets/{fleet_id}/schemas`, and each schema under its kind and name. */
export const schemaRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/schemas': {
    scope: 'read',
    summary: 'List schemas',
    answers: { 200: listOf(schemaDocument) },
  },
  'PUT /fleets/{fleet_id}/schemas/{kind}/{name}': {
    scope: 'provision',
    summary: 'Store a schema',
    params,
    body: bytesBody('The JSON Schema 2020-12, stored byte for byte.'),
    answers: { 200: schemaDocument, 201: schemaDocument },
    bodyLimitKey: 'schemaBytesMax',
  },
  'GET /fleets/{fleet_id}/schemas/{kind}/{name}': {
    scope: 'read',
    summary: 'Show a schema',
    params,
    answers: {
      200: Type.Unsafe<unknown>({ type: 'object', description: 'The JSON Schema as it was stored.' }),
    },
  },
  'DELETE /fleets/{fleet_id}/schemas/{kind}/{name}': {
    scope: 'provision',
    summary: 'Delete a schema',
    params,
    answers: { 204: noDocument },
  },
});

/** `/fleets/{fleet_id}/schemas:check`. */
export const schemaCheckRoutes = declareRoutes({
  'POST /fleets/{fleet_id}/schemas:check': {
    scope: 'provision',
    summary: 'Check a schema, and a sample against it',
    description:
      'Says whether the schema would be stored, what it costs, and whether a body would be taken. Stores nothing. Both are texts, so that they are checked byte for byte.',
    body: schemaCheckBody,
    answers: { 200: schemaCheckDocument },
    // It changes nothing, and is asked as somebody types.
    book: () => undefined,
  },
});
