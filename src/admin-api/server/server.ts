import type { RequestListener } from 'node:http';
import swagger from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifySchema,
} from 'fastify';
import type { Settings } from '../../core/config/settings.ts';
import { ApiError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { NotReady } from '../../core/telemetry/readiness.ts';
import { newRequestId } from '../../core/telemetry/request-id.ts';
import type { SpanBuffer } from '../../core/telemetry/trace.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { AuditLog } from '../../domain/audit-log.ts';
import { auditChanges, prepareAudit } from '../auth/audit-hook.ts';
import { type Bearers, requireToken } from '../auth/authorization.ts';
import type { AdminApiConfig } from '../config.ts';
import type { ConsoleCodes } from '../console/console-codes.ts';
import type { ConsoleFiles } from '../console/console-files.ts';
import { addConsoleRoutes } from '../console/console-routes.ts';
import { addConsoleSessionRoute, authenticateByCode } from '../console/login-routes.ts';
import type { AdminApp } from '../request/admin-app.ts';
import { documentBytesMax, takeBytes, takeDocuments } from '../request/bodies.ts';
import { serializerOf, validatorOf } from '../request/compiled-schemas.ts';
import { bindCursors, cursorPart } from '../request/list-cursor.ts';
import type { MetricSet } from '../request/metric-set.ts';
import { Transfers } from '../request/transfers.ts';
import { Admission } from './admission.ts';
import { errorHandler } from './error-handler.ts';
import { addHealthRoutes } from './health.ts';
import { hostRefusal } from './host-check.ts';
import {
  addMetricsRoute,
  createScrape,
  registerMetrics,
  type Scrape,
  type ServerFigures,
} from './metrics-route.ts';
import { OpenRequests } from './open-requests.ts';
import { logRequests, traceRequests } from './request-log.ts';

/** Parts that routes of several groups share. */
export interface SharedByRoutes {
  open: OpenRequests;
  exports: Transfers;
}

export type AddRoutes = (app: AdminApp, shared: SharedByRoutes) => void;

/** The routes that require a token, by the kind of their bodies, in the order in which they are described. */
export interface RouteGroups {
  documents: readonly AddRoutes[];
  imports: readonly AddRoutes[];
  bytes: readonly AddRoutes[];
}

/** The admin server's own needs, and the routes and metrics that it is given. */
export interface AdminServerOptions extends Bearers {
  registry: Pick<Registry, 'lookFor'>;
  config: AdminApiConfig;
  /** Host names that the listener answers to, besides loopback and its own address (D27). */
  allowedHosts(): readonly string[];
  audit: AuditLog;
  /** Reasons why devices should not be routed here now; empty if ready. */
  notReady(): readonly NotReady[];
  /** Undefined if tracing is off. */
  traces: { readonly spans: SpanBuffer } | undefined;
  /** Undefined if the console is off. */
  consoleFiles: ConsoleFiles | undefined;
  consoleCodes: ConsoleCodes;
  log: Log;
  routes: RouteGroups;
  figures: ServerFigures;
  /** Add the metrics of features. */
  metrics: readonly ((set: MetricSet) => void)[];
}

interface ObjectSchema {
  required?: readonly string[];
  properties?: Record<string, { default?: unknown }>;
}

/** Documented as opaque: the position in it concerns only its list. */
const cursor = { type: 'string', description: '`next` of the previous page.' };

/**
 * Converts a route's schema for the OpenAPI document. The schema that validates requires parameters with defaults, since
 * these are filled in first; clients need not send them.
 */
function documented(schema: FastifySchema): FastifySchema {
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

/** Adds a timeout for receiving bodies to all routes added from here on. */
function limitBodyTimes(app: AdminApp, settings: Settings<{ bodyTimeoutSeconds: number }>): void {
  app.addHook('preParsing', async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.raw.complete) return;
    if (request.headers.expect !== undefined) reply.raw.writeContinue();
    watchBody(request, reply, settings.current.bodyTimeoutSeconds * 1_000);
  });
  app.addHook('onSend', async ({ raw }: FastifyRequest, reply: FastifyReply) => {
    // The body is not read, so the listener closes the connection after the answer.
    if (!raw.complete && reply.statusCode >= 400) reply.header('Connection', 'close');
  });
}

function watchBody({ raw, routeOptions }: FastifyRequest, reply: FastifyReply, timeoutMs: number): void {
  const { hasLongBody = false } = routeOptions.config;
  const { socket } = raw;
  let bytesBefore = socket.bytesRead;
  const check = (): void => {
    if (raw.complete) return;
    // Received but unread bytes are the server's own delay.
    if (hasLongBody && (socket.bytesRead > bytesBefore || raw.readableLength > 0)) {
      bytesBefore = socket.bytesRead;
      timer.refresh();
    } else if (hasLongBody) socket.destroy();
    else {
      // Fails the reader of the body; destroying the request would close the connection before it is answered.
      const msg = 'The body did not arrive in time (bodyTimeoutSeconds).';
      raw.emit('error', new ApiError('bad_request', { msg }));
    }
  };
  const timer = setTimeout(check, timeoutMs);
  const clear = (): void => clearTimeout(timer);
  raw.once('end', clear);
  reply.raw.once('close', clear);
}

/** Creates the admin API, to be attached to a listener. Part of the control plane: on the main thread, where it slows no device. */
export async function createAdminServer(
  options: AdminServerOptions,
): Promise<{ app: FastifyInstance; handler: RequestListener; scrape: Scrape }> {
  const admission = new Admission(options, options.config);
  const scrape = createScrape(registerMetrics(options.figures, admission, options.metrics));
  const app = newApp(options, admission);
  await app.register(swagger, {
    transform: ({ schema, url }) => ({ schema: schema && documented(schema), url }),
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Fleetpost admin API', version: '1' },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
  });
  await app.register(async (open) => {
    addHealthRoutes(open, options);
    addMetricsRoute(open, scrape);
    if (options.consoleFiles !== undefined) addConsoleRoutes(open, options.consoleFiles);
    addDescriptionRoute(open, () => app.swagger());
  });
  const prefix = '/admin/v1';
  if (options.config.console) await app.register(async (login) => addLogin(login, options), { prefix });
  await app.register((admin) => addAdminRoutes(admin, options), { prefix });
  await app.ready();
  return { app, handler: admission.before(app.routing), scrape };
}

/**
 * Takes the place of a path that cannot be decoded, which Fastify would answer before all hooks: without an id, a line of
 * the log, a look at the host, or word that the connection ends.
 */
const malformedPath = '/malformed';

function isDecodable(url: string): boolean {
  if (!url.includes('%')) return true;
  const [path = ''] = url.split('?', 1);
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** Creates the app with everything that applies to all routes. */
function newApp(options: AdminServerOptions, admission: Admission): AdminApp {
  const { config } = options;
  const onError = errorHandler(options.log);
  const app = Fastify({
    logger: false,
    bodyLimit: documentBytesMax,
    frameworkErrors: onError,
    rewriteUrl: ({ url = '/' }) => (isDecodable(url) ? url : malformedPath),
    genReqId: ({ headers }) => newRequestId(headers['x-request-id']),
    // What has come when it closes is answered like any other; the listener answers what comes after.
    return503OnClosing: false,
    // A HEAD of an export would read all of it for nothing.
    exposeHeadRoutes: false,
    // Path parameters are validated whole; Node bounds the whole head of a request.
    routerOptions: { maxParamLength: 16_384 },
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setValidatorCompiler<object>(({ schema, httpPart }) => validatorOf(schema, httpPart));
  app.setSerializerCompiler<object>(({ schema }) => serializerOf(schema));
  app.setErrorHandler(onError);
  app.setNotFoundHandler(async ({ url, originalUrl }) => {
    if (url !== originalUrl) throw new ApiError('bad_request', { msg: 'The path is malformed.' });
    throw new ApiError('route_not_found');
  });
  app.removeAllContentTypeParsers();
  app.decorateRequest('principal', null);
  logRequests(app, options.log);
  prepareAudit(app);
  admission.addTo(app);
  app.addHook('onRequest', async ({ raw }) => {
    const refusal = hostRefusal(raw, options.allowedHosts());
    if (refusal !== undefined) throw refusal;
  });
  limitBodyTimes(app, config.settings);
  if (options.traces !== undefined) traceRequests(app, options.traces.spans);
  return app;
}

/** Adds the OpenAPI document, which is made at the first request: half a megabyte, and half a second of this thread. */
function addDescriptionRoute(open: AdminApp, describe: () => object): void {
  let text: Buffer | undefined;
  open.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    text ??= Buffer.from(JSON.stringify(describe()));
    return reply.type('application/json').send(text);
  });
}

/** Adds the route of the admin API that takes a code instead of a token. */
function addLogin(login: AdminApp, options: AdminServerOptions): void {
  authenticateByCode(login, options);
  auditChanges(login, options);
  takeDocuments(login);
  addConsoleSessionRoute(login, options);
}

/** Adds all routes that require a token, grouped by the kind of their bodies. */
async function addAdminRoutes(admin: AdminApp, options: AdminServerOptions): Promise<void> {
  auditChanges(admin, options);
  const open = new OpenRequests();
  admin.addHook('onClose', async () => open.close());
  requireToken(admin, options, open);
  admin.addHook('preValidation', async ({ params }) => {
    const { fleet_id: fleetId } = params as { fleet_id?: string };
    if (fleetId !== undefined) await options.registry.lookFor(fleetId);
  });
  bindCursors(admin);
  const exports = new Transfers(admin, 'exports', options.config.exportsMax);
  const addAll = (app: AdminApp, routes: readonly AddRoutes[]): void => {
    for (const add of routes) add(app, { open, exports });
  };
  const { documents, imports, bytes } = options.routes;
  await admin.register(async (app) => {
    takeDocuments(app);
    addAll(app, documents);
  });
  await admin.register(async (app) => {
    takeDocuments(app);
    addAll(app, imports);
  });
  await admin.register(async (app) => {
    takeBytes(app);
    addAll(app, bytes);
  });
}
