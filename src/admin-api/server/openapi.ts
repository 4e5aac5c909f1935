import type { FastifySchema } from 'fastify';
import { cursorPart } from '../request/list-cursor.ts';

interface ObjectSchema {
  required?: readonly string[];
  properties?: Record<string, { default?: unknown }>;
}

/** Opaque: the digits that stand behind the digest are nobody's but the list's. */
const cursor = { type: 'string', description: '`next` of the page before.' };

/**
 * The schemas of a route as the document has them. What has a default is always there for its handler, so the schema that
 * checks a request requires it, once defaults are filled in; nobody has to send it.
 */
export function documented(schema: FastifySchema): FastifySchema {
  const query = schema.querystring as ObjectSchema | undefined;
  if (query === undefined && cursorPart(schema) === undefined) return schema;
  const shown = { ...schema };
  if (query?.properties !== undefined) shown.querystring = withoutDefaults(query);
  const part = cursorPart(schema);
  if (part === 'query') shown.querystring = withCursor(shown.querystring as ObjectSchema);
  if (part === 'body') shown.body = withCursor(schema.body as ObjectSchema);
  return shown;
}

function withoutDefaults(query: ObjectSchema): ObjectSchema {
  const { required = [], properties = {} } = query;
  return { ...query, required: required.filter((name) => properties[name]?.default === undefined) };
}

function withCursor(schema: ObjectSchema): ObjectSchema {
  return { ...schema, properties: { ...schema.properties, after: cursor } } as ObjectSchema;
}
