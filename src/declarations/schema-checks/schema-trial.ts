import { ApiError, type FieldError } from '../../core/errors.ts';
import { checkSchema, type SchemaLimits } from '../schemas/check-schema.ts';
import { parseDatapoint, parseMessage, parseSchema } from '../schemas/payload.ts';
import { Schema, type SchemaKind, type SchemaWatch, unwatched } from '../schemas/schema.ts';
import type { SchemaCost } from '../schemas/schema-cost.ts';

/** Verdict on a schema as if it were put, and on a body that is held against it. */
export interface SchemaTrial {
  /** Why the schema would be refused. */
  fault: string | undefined;
  cost: SchemaCost | undefined;
  /** Why the sample would be refused; null if it matches. Undefined if it was not checked. */
  refusal: { code: string; msg: string; errors: readonly FieldError[] } | null | undefined;
}

/** Text of a schema, and of a sample of its kind. */
export interface TriedSchema {
  kind: SchemaKind;
  text: string;
  sample?: string;
}

/** Checks a schema as it is checked when it is put, and a body as a device's or an operator's is. */
export function trySchema({ kind, text, sample }: TriedSchema, limits: SchemaLimits): SchemaTrial {
  try {
    const cost = checkSchema(parseSchema(Buffer.from(text)), limits);
    const refusal =
      sample === undefined ? undefined : refusalOf(new Schema(text, watchWithin(limits)), kind, sample);
    return { fault: undefined, cost, refusal };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { fault: error.message, cost: undefined, refusal: undefined };
  }
}

/** Refuses what takes too many operations, and nothing else that depends on the machine. */
function watchWithin({ schemaStepsMax }: SchemaLimits): SchemaWatch {
  return { ...unwatched, settings: { current: { ...unwatched.settings.current, schemaStepsMax } } };
}

function refusalOf(schema: Schema, kind: SchemaKind, sample: string): SchemaTrial['refusal'] {
  const bytes = Buffer.from(sample);
  try {
    const body = kind === 'datapoint' ? parseDatapoint(bytes) : (parseMessage(bytes) ?? {});
    schema.check(body, bytes.length);
    return null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { code: error.code, msg: error.message, errors: error.options.errors ?? [] };
  }
}
