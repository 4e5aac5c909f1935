import type { SchemaDocument, schemaRoutes } from '../../contract/schema.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import type { SchemaText } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Handlers } from '../request/routes.ts';

function describe({
  kind,
  name,
  disabled = null,
}: Pick<SchemaText, 'kind' | 'name'> & { disabled?: string | null }): SchemaDocument {
  return { kind, name, disabled };
}

/** Handles `/fleets/{fleet_id}/schemas`, and each schema under its kind and name. */
export function schemaHandlers({ registry }: { registry: Registry }): Handlers<typeof schemaRoutes> {
  return {
    'GET /fleets/{fleet_id}/schemas': async ({ params }) => {
      const { schemas } = registry.fleet(params.fleet_id);
      return { items: schemas.map(describe), next: null };
    },
    'PUT /fleets/{fleet_id}/schemas/{kind}/{name}': async (
      { params: { fleet_id, kind, name }, body },
      reply,
    ) => {
      if (!schemaNamePattern.test(name)) {
        throw new ApiError('bad_request', { msg: 'A schema name is 1 to 255 letters, digits, _ and -.' });
      }
      const isNew = await registry.putSchema(fleet_id, kind, name, body ?? Buffer.alloc(0));
      reply.code(isNew ? 201 : 200);
      return describe({ kind, name });
    },
    'GET /fleets/{fleet_id}/schemas/{kind}/{name}': async ({ params: { fleet_id, kind, name } }, reply) =>
      reply.type('application/json').send(registry.schema(fleet_id, kind, name).text),
    'DELETE /fleets/{fleet_id}/schemas/{kind}/{name}': async (
      { params: { fleet_id, kind, name } },
      reply,
    ) => {
      await registry.deleteSchema(fleet_id, kind, name);
      return reply.code(204).send(null);
    },
  };
}
