import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { type SchemaCheckDocument, schemaCheckBody, schemaCheckDocument } from '../../contract/schema.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { SchemaTrial } from '../../declarations/schema-checks/schema-trial.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';

interface Needs {
  config: AdminApiConfig;
  registry: Registry;
}

function describeTrial({ fault, cost, refusal }: SchemaTrial, stepsMax: number): SchemaCheckDocument {
  return {
    fault: fault ?? null,
    steps: cost?.steps ?? null,
    steps_at: cost?.path ?? null,
    steps_max: stepsMax,
    sample:
      refusal === undefined
        ? null
        : {
            matches: refusal === null,
            error: refusal?.code ?? null,
            msg: refusal?.msg ?? null,
            errors: [...(refusal?.errors ?? [])],
          },
  };
}

const checking = {
  summary: 'Check a schema, and a sample against it',
  description:
    'Says whether the schema would be stored, what it costs, and whether a body would be taken. Stores nothing. Both are texts, so that they are checked byte for byte.',
  params: fleetPath,
  body: schemaCheckBody,
  response: { 200: schemaCheckDocument, ...errorAnswers },
};

const checkSchemas =
  ({ config, registry }: Needs): Handler<typeof checking> =>
  async ({ params: { fleet_id }, body: { kind, name, schema, sample } }) => {
    if ((name === undefined) === (schema === undefined)) {
      throw new ApiError('invalid_body', { msg: 'The body has either a name or a schema.' });
    }
    registry.fleet(fleet_id);
    const text = schema ?? registry.schema(fleet_id, kind, name ?? '').text;
    if (Buffer.byteLength(text) > config.schemaBytesMax) {
      throw new ApiError('request_too_large', {
        msg: `The schema is larger than ${config.schemaBytesMax} bytes (schemaBytesMax).`,
      });
    }
    if (sample !== undefined && Buffer.byteLength(sample) > config.bodyBytesMax) {
      throw new ApiError('request_too_large', {
        msg: `The sample is larger than ${config.bodyBytesMax} bytes (bodyBytesMax).`,
      });
    }
    const { schemaStepsMax } = config.settings.current;
    const trial = await registry.checker.try(fleet_id, {
      kind,
      text,
      ...(sample !== undefined && { sample }),
    });
    return describeTrial(trial, schemaStepsMax);
  };

/** Adds `/fleets/{fleet_id}/schemas:check`. */
export function addSchemaCheckRoute(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const { schemaBytesMax, bodyBytesMax } = context.config;
  route('POST', '/fleets/:fleet_id/schemas::check', 'provision', checking, checkSchemas(context), {
    // It changes nothing, and is asked as somebody types.
    book: () => undefined,
    // Room for texts with every quote and line end escaped.
    bodyLimit: 2 * (schemaBytesMax + bodyBytesMax) + 4_096,
  });
}
