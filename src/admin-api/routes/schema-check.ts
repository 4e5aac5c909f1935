import type { SchemaCheckDocument, schemaCheckRoutes } from '../../contract/schema.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { SchemaTrial } from '../../declarations/schema-checks/schema-trial.ts';
import type { AdminApiConfig } from '../config.ts';
import type { Handlers } from '../request/routes.ts';

interface Parts {
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

/** Handles `/fleets/{fleet_id}/schemas:check`. */
export function schemaCheckHandlers({ config, registry }: Parts): Handlers<typeof schemaCheckRoutes> {
  return {
    'POST /fleets/{fleet_id}/schemas:check': async ({
      params: { fleet_id },
      body: { kind, name, schema, sample },
    }) => {
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
    },
  };
}
