import type { ValidateFunction } from 'ajv';
import { afterAll, afterEach, expect } from 'vitest';

/**
 * Holds every answer that a test gets from the admin API by `fetch`, and by the commands that it runs in this process,
 * against the OpenAPI document of that server: its status, its type, and each of its members.
 */
interface Answers {
  fetch: typeof fetch;
  /** Operations in the document of the first server that was asked; all are of the same build. */
  operations?: Promise<Operation[]>;
  pending: Promise<void>[];
  untrue: Set<string>;
}

interface Operation {
  method: string;
  path: RegExp;
  name: string;
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
  validators: Map<object, Promise<ValidateFunction>>;
}

/** One for the files of a process that share what they import, and for those that do not. */
const shared = globalThis as { answers?: Answers };
shared.answers ??= watch({ fetch: globalThis.fetch, pending: [], untrue: new Set() });
const { answers } = shared;

function watch(made: Answers): Answers {
  globalThis.fetch = async (input, init) => {
    const response = await made.fetch(input, init);
    const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
    if (/^\/(admin\/v1\/|healthz$|readyz$)/.test(pathname)) {
      const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
      made.pending.push(check(made, method.toLowerCase(), origin, pathname, response));
    }
    return response;
  };
  return made;
}

async function check(made: Answers, method: string, origin: string, path: string, response: Response) {
  const { status, headers } = response;
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1);
  // A body that ends early is a matter of the test.
  const text =
    type === 'application/json'
      ? await response
          .clone()
          .text()
          .catch(() => '')
      : '';
  made.operations ??= operationsOf(made.fetch, origin);
  const operations = await made.operations.catch(() => []);
  // That server was gone: the next one will tell.
  if (operations.length === 0) delete made.operations;
  const found = operations.find((one) => one.method === method && one.path.test(path));
  const untrue = (why: string): unknown =>
    made.untrue.add(`${method} ${found?.name ?? path}: ${status} ${why}`);
  if (found === undefined) {
    if (operations.length > 0 && status < 400) untrue('is of a route that is not in the document');
    return;
  }
  const { responses, validators } = found;
  const documented = responses[status] ?? responses[`${Math.floor(status / 100)}XX`];
  if (documented === undefined) return void untrue('is not in the document');
  if (type === '') return;
  const schema = documented.content?.[type]?.schema;
  if (schema === undefined) return void untrue(`as ${type} is not in the document`);
  if (text === '') return;
  if (!validators.has(schema)) validators.set(schema, compiled(schema));
  const validate = await validators.get(schema);
  if (validate?.(JSON.parse(text)) === false)
    untrue(`${JSON.stringify(validate.errors)} of ${text.slice(0, 500)}`);
}

async function operationsOf(ask: typeof fetch, origin: string): Promise<Operation[]> {
  const document = (await (await ask(`${origin}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, Pick<Operation, 'responses'>>>;
  };
  return Object.entries(document.paths).flatMap(([name, methods]) => {
    const pattern = name.replace(/[.:]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+');
    const path = new RegExp(`^${pattern}$`);
    return Object.entries(methods).map(([method, { responses }]) => ({
      ...{ method, path, name, responses },
      validators: new Map(),
    }));
  });
}

async function compiled(schema: object): Promise<ValidateFunction> {
  const { Ajv } = await import('ajv');
  return new Ajv({ allErrors: true, strict: false, validateSchema: false }).compile(closed(schema) as object);
}

/** The same schema without room for members that it does not name. */
function closed(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const members = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const named = Object.keys((schema as { properties?: object }).properties ?? {});
  return named.length > 0 && !('additionalProperties' in members)
    ? { ...members, additionalProperties: false }
    : members;
}

async function expectTrue(): Promise<void> {
  await Promise.all(answers?.pending.splice(0) ?? []);
  const untrue = [...(answers?.untrue ?? [])];
  answers?.untrue.clear();
  expect(untrue, 'answers that the OpenAPI document does not describe').toEqual([]);
}
afterEach(expectTrue);
afterAll(expectTrue);
