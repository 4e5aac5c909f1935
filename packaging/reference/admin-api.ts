import { createAdminServer } from '../../src/admin-api/server/server.ts';
import { describedServer } from './described-server.ts';
import { code, type Lines, page, table } from './markdown.ts';

/** Subset of JSON Schema that the admin API's documents use. */
interface Schema {
  type?: string | readonly string[];
  description?: string;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  items?: Schema;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  minimum?: number;
  maximum?: number;
  default?: unknown;
}

type Content = Readonly<Record<string, { schema?: Schema }>>;

interface Operation {
  summary?: string;
  description?: string;
  parameters?: readonly {
    name: string;
    in: string;
    required?: boolean;
    schema: Schema;
    description?: string;
  }[];
  requestBody?: { content: Content };
  security?: readonly { token?: readonly string[] }[];
  responses?: Readonly<Record<string, { description?: string; content?: Content }>>;
}

interface Route {
  method: string;
  path: string;
  operation: Operation;
}

/** Pages for more, or for less, than one noun of the paths. */
const pageNames: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^\/devices\/\{device_id\}\/mail/, 'mail'],
  [/^\/devices\/\{device_id\}\/(refusals|diagnosis|series)/, 'device-diagnosis'],
  [/^\/actions\/\{name\}\/(runs|logs|dead-letters)/, 'action-runs'],
  [/^\/actions\/\{name\}\/state/, 'action-state'],
  [/^\/actions\/\{name\}\/test/, 'action-tests'],
  [/^\/forwarders\/\{name\}\/dead-letters/, 'forwarder-dead-letters'],
  [/^\/(counts|attention|pulse|tags)/, 'fleets'],
  [/^\/refusals/, 'device-diagnosis'],
  [/^\/console-/, 'console'],
  [/^\/self/, 'tokens'],
  [/^\/(healthz|readyz|metrics|backup|top)/, 'server'],
];

/** The page of a route: the noun that its path is about, within a fleet or on the server. */
function pageNameOf(path: string): string {
  const within = path.replace('/admin/v1', '').replace(/^\/fleets\/\{fleet_id\}(?=\/)/, '');
  const [, noun = ''] = /^\/([a-z-]+)/.exec(within) ?? [];
  return pageNames.find(([pattern]) => pattern.test(within))?.[1] ?? noun;
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(', ');
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  const type = [schema.type ?? 'any'].flat().join(' or ');
  if (schema.minimum === undefined || schema.maximum === undefined) return type;
  return `${type}, ${schema.minimum} to ${schema.maximum}`;
}

/** The members of a document and of what it contains, by their paths. */
function members(schema: Schema, path = ''): string[][] {
  const alternatives = schema.anyOf?.flatMap((one) => members(one, path)) ?? [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    const at = `${path}${name}`;
    const isRequired = schema.required?.includes(name) ?? false;
    return [
      [code(at), typeOf(one), isRequired ? 'always' : '', one.description ?? ''],
      ...members(one, `${at}.`),
    ];
  });
  const ofItems = schema.items === undefined ? [] : members(schema.items, `${path.slice(0, -1)}[].`);
  const rows = [...own, ...alternatives, ...ofItems];
  return rows.filter(([name], index) => rows.findIndex(([other]) => other === name) === index);
}

/** Documents that a page has described, and where. */
type Described = Map<string, string>;

function documentLines(title: string, content: Content | undefined, at: string, described: Described): Lines {
  return Object.entries(content ?? {}).flatMap(([mediaType, { schema = {} }]) => {
    const item = itemOf(schema);
    const rows = members(item ?? schema);
    const what = `${title} ${code(mediaType)}${item === undefined ? '' : ', `items` and `next`; an item'}`;
    if (rows.length === 0) return [`${what}: ${typeOf(schema)}.`, ''];
    const key = JSON.stringify(rows);
    const before = described.get(key);
    if (before !== undefined) return [`${what}: as ${before}.`, ''];
    described.set(key, item === undefined ? `the ${title.toLowerCase()} of ${at}` : `an item of ${at}`);
    return [`${what}:`, '', ...table(['Member', 'Type', 'Present', 'What it is'], rows)];
  });
}

/** Finds the schema of a list's items, which is described in place of the list. */
function itemOf({ properties = {} }: Schema): Schema | undefined {
  return Object.keys(properties).sort().join() === 'items,next' ? properties.items?.items : undefined;
}

/** The scope that a request's token must have, or `any`; undefined if it needs no token. */
function scopeOf({ security = [] }: Operation): string | undefined {
  const [scopes] = security.map(({ token }) => token ?? []);
  return scopes && (scopes[0] ?? 'any');
}

function accessTo(operation: Operation): string {
  const scope = scopeOf(operation);
  if (scope === undefined) return 'no token needed';
  return scope === 'any' ? 'a token of any scope' : `scope ${code(scope)}`;
}

function describe({ method, path, operation }: Route, described: Described): Lines {
  const name = code(`${method} ${path}`);
  const parameters = (operation.parameters ?? [])
    .filter((parameter) => parameter.in !== 'path')
    .map((parameter) => [
      code(parameter.name),
      `${parameter.in}: ${typeOf(parameter.schema)}`,
      parameter.required ? 'always' : '',
      parameter.description ?? parameter.schema.description ?? '',
    ]);
  const answers = Object.entries(operation.responses ?? {}).filter(([status]) => !/^[45]X/.test(status));
  return [
    `## ${operation.summary}`,
    '',
    `${name}, ${accessTo(operation)}. ${operation.description ?? ''}`.trimEnd(),
    '',
    ...table(['Parameter', 'Type', 'Present', 'What it is'], parameters),
    ...documentLines('Body', operation.requestBody?.content, name, described),
    ...answers.flatMap(([status, { content }]) =>
      content === undefined
        ? [`Answer ${status}, no body.`, '']
        : documentLines(`Answer ${status}`, content, name, described),
    ),
  ];
}

/** Every route of the admin API: an index, and a page for each noun. */
export async function adminApiPages(): Promise<Map<string, string>> {
  const { app } = await createAdminServer(describedServer());
  const { paths } = app.swagger() as unknown as { paths: Record<string, Record<string, Operation>> };
  await app.close();
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const pages = new Map<string, string>();
  const index: Lines = [
    'The same as `GET /openapi.json` of a running server, which is OpenAPI 3.1. A request carries',
    '`Authorization: Bearer TOKEN`; its token must have the scope of the route. Errors are in [the catalogue](errors.md).',
    'Paths begin with `/admin/v1`, but for `/healthz`, `/readyz` and `/metrics`.',
    '',
  ];
  for (const name of [...new Set(routes.map(({ path }) => pageNameOf(path)))].sort()) {
    const own = routes.filter(({ path }) => pageNameOf(path) === name);
    const described: Described = new Map();
    const reader = 'programs that manage a server: routes, their parameters and documents.';
    const lines = own.flatMap((route) => describe(route, described));
    pages.set(`admin-api/${name}.md`, page(`Admin API: ${name.replace('-', ' ')}`, reader, lines));
    const rows = own.map(({ method, path, operation }) => [
      code(`${method} ${path.replace('/admin/v1', '')}`),
      operation.summary ?? '',
      scopeOf(operation) ?? '',
    ]);
    index.push(
      `## [${name.replace('-', ' ')}](admin-api/${name}.md)`,
      '',
      ...table(['Route', 'What it does', 'Scope'], rows),
    );
  }
  pages.set(
    'admin-api.md',
    page('Admin API', 'programs that manage a server: every route and its scope.', index),
  );
  return pages;
}
