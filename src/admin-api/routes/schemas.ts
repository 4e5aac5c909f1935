import { Type } from 'typebox';
import { errorAnswers, fleetPath, listOf } from '../../contract/document.ts';
import { type SchemaDocument, schemaDocument, schemaKind } from '../../contract/schema.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import type { SchemaText } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { AdminApiConfig } from '../config.ts';
import { bytesBody } from '../request/bodies.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';

interface Needs {
  config: AdminApiConfig;
  registry: Registry;
}

const schemaPath = Type.Object({ fleet_id: Type.String(), kind: schemaKind, name: Type.String() });
/** Sent as stored, not serialized from an object. */
const schemaText = Type.Unsafe<string>({ type: 'object', description: 'The JSON Schema as it was stored.' });
function describe({
  kind,
  name,
  disabled = null,
}: Pick<SchemaText, 'kind' | 'name'> & { disabled?: string | null }): SchemaDocument {
  return { kind, name, disabled };
}

const listing = {
  summary: 'List schemas',
  params: fleetPath,
  response: { 200: listOf(schemaDocument), ...errorAnswers },
};

const listSchemas =
  ({ registry }: Needs): Handler<typeof listing> =>
  async ({ params }) => {
    const { schemas } = registry.fleet(params.fleet_id);
    return { items: schemas.map(describe), next: null };
  };

const storing = {
  summary: 'Store a schema',
  params: schemaPath,
  body: bytesBody('The JSON Schema 2020-12, stored byte for byte.'),
  response: { 200: schemaDocument, 201: schemaDocument, ...errorAnswers },
};

const putSchema =
  ({ registry }: Needs): Handler<typeof storing> =>
  async ({ params: { fleet_id, kind, name }, body }, reply) => {
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'A schema name is 1 to 255 letters, digits, _ and -.' });
    }
    const isNew = await registry.putSchema(fleet_id, kind, name, body ?? Buffer.alloc(0));
    reply.code(isNew ? 201 : 200);
    return describe({ kind, name });
  };

const showing = {
  summary: 'Show a schema',
  params: schemaPath,
  response: { 200: schemaText, ...errorAnswers },
};

const showSchema =
  ({ registry }: Needs): Handler<typeof showing> =>
  async ({ params: { fleet_id, kind, name } }, reply) =>
    reply.type('application/json').send(registry.schema(fleet_id, kind, name).text);

const deletion = {
  summary: 'Delete a schema',
  params: schemaPath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteSchema =
  ({ registry }: Needs): Handler<typeof deletion> =>
  async ({ params: { fleet_id, kind, name } }, reply) => {
    await registry.deleteSchema(fleet_id, kind, name);
    return reply.code(204).send(null);
  };

/** Adds `/fleets/{fleet_id}/schemas`, and each schema under its kind and name. */
export function addSchemaRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/fleets/:fleet_id/schemas', 'read', listing, listSchemas(context));
  route('PUT', '/fleets/:fleet_id/schemas/:kind/:name', 'provision', storing, putSchema(context), {
    bodyLimitKey: 'schemaBytesMax',
    bodyLimit: context.config.schemaBytesMax,
  });
  route('GET', '/fleets/:fleet_id/schemas/:kind/:name', 'read', showing, showSchema(context));
  route('DELETE', '/fleets/:fleet_id/schemas/:kind/:name', 'provision', deletion, deleteSchema(context));
}
