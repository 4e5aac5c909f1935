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
import { newRequestId } from '../../core/request-id.ts';
import { addActionRoutes } from '../../features/actions/routes.ts';
import { addActionRunRoutes } from '../../features/actions/run-routes.ts';
import { addActionStateRoutes } from '../../features/actions/state-routes.ts';
import { addAuditRoutes } from '../../features/audit/routes.ts';
import { addBackupRoutes } from '../../features/backups/routes.ts';
import { addBroadcastRoutes } from '../../features/broadcasts/routes.ts';
import { addClaimTokenRoutes } from '../../features/claiming/routes.ts';
import { addConsumerRoutes } from '../../features/consumers/routes.ts';
import { addForwarderRoutes } from '../../features/forwarders/routes.ts';
import { addRecordRoutes } from '../../features/records/routes.ts';
import { addSeriesRoute } from '../../features/series/routes.ts';
import { auditChanges, prepareAudit } from '../auth/audit-hook.ts';
import { requireToken } from '../auth/authorization.ts';
import { addTokenRoutes } from '../auth/tokens.ts';
import { addConsoleRoutes } from '../console/console-routes.ts';
import { addConsoleCodeRoute, addConsoleSessionRoute, authenticateByCode } from '../console/login-routes.ts';
import { addExportRoute } from '../import-export/device-export.ts';
import { addImportRoute } from '../import-export/import.ts';
import { addAttentionRoute } from '../insight/attention.ts';
import { DeviceCounts } from '../insight/device-counts.ts';
import { addDiagnosisRoute } from '../insight/diagnosis.ts';
import { addRefusalRoute } from '../insight/refusals.ts';
import { documentBytesMax, takeBytes, takeDocuments } from '../request/bodies.ts';
import { serializerOf, validatorOf } from '../request/compiled-schemas.ts';
import type { AdminApp, AdminContext } from '../request/context.ts';
import { bindCursors, cursorPart } from '../request/list-cursor.ts';
import { Transfers } from '../request/transfers.ts';
import { addDeadLetterRoutes } from '../routes/dead-letters.ts';
import { addDeviceChangeRoute } from '../routes/device-changes.ts';
import { addDeviceRoutes } from '../routes/devices.ts';
import { addFleetCountRoute } from '../routes/fleet-counts.ts';
import { addFleetRoutes } from '../routes/fleets.ts';
import { addHoldRoutes } from '../routes/hold.ts';
import { addLockoutRoutes } from '../routes/lockouts.ts';
import { addMailRoutes } from '../routes/mail.ts';
import { addReceiptRoutes } from '../routes/receipts.ts';
import { addSchemaCheckRoute } from '../routes/schema-check.ts';
import { addSchemaRoutes } from '../routes/schemas.ts';
import { addServerRoute } from './about-server.ts';
import { Admission } from './admission.ts';
import { errorHandler } from './error-handler.ts';
import { addHealthRoutes } from './health.ts';
import { hostRefusal } from './host-check.ts';
import { addMetricsRoute, createScrape, type Scrape } from './metrics-route.ts';
import { OpenRequests } from './open-requests.ts';
import { logRequests, traceRequests } from './request-log.ts';
import { addTopRoute } from './top.ts';

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

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its body may take any time as long as chunks keep arriving. */
    hasLongBody?: boolean;
  }
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
  context: AdminContext,
): Promise<{ app: FastifyInstance; handler: RequestListener; scrape: Scrape }> {
  const admission = new Admission(context, context.config);
  const scrape = createScrape(context, admission);
  const app = newApp(context, admission);
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
    addHealthRoutes(open, context);
    addMetricsRoute(open, scrape);
    if (context.consoleFiles !== undefined) addConsoleRoutes(open, context.consoleFiles);
    addDescriptionRoute(open, () => app.swagger());
  });
  const prefix = '/admin/v1';
  if (context.config.console) await app.register(async (login) => addLogin(login, context), { prefix });
  await app.register((admin) => addAdminRoutes(admin, context), { prefix });
  await app.ready();
  return { app, handler: admission.before(app.routing), scrape };
}

/** Creates the app with everything that applies to all routes. */
function newApp(context: AdminContext, admission: Admission): AdminApp {
  const { config } = context;
  const onError = errorHandler(context.log);
  const app = Fastify({
    logger: false,
    bodyLimit: documentBytesMax,
    frameworkErrors: onError,
    genReqId: ({ headers }) => newRequestId(headers['x-request-id']),
    // A HEAD of an export would read all of it for nothing.
    exposeHeadRoutes: false,
    // Path parameters are validated whole; Node bounds the whole head of a request.
    routerOptions: { maxParamLength: 16_384 },
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setValidatorCompiler<object>(({ schema, httpPart }) => validatorOf(schema, httpPart));
  app.setSerializerCompiler<object>(({ schema }) => serializerOf(schema));
  app.setErrorHandler(onError);
  app.setNotFoundHandler(async () => {
    throw new ApiError('route_not_found');
  });
  app.removeAllContentTypeParsers();
  app.decorateRequest('principal', null);
  logRequests(app, context.log);
  prepareAudit(app);
  admission.addTo(app);
  app.addHook('onRequest', async ({ raw }) => {
    const refusal = hostRefusal(raw, context.allowedHosts());
    if (refusal !== undefined) throw refusal;
  });
  limitBodyTimes(app, config.settings);
  if (context.traces !== undefined) traceRequests(app, context.traces.spans);
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
function addLogin(login: AdminApp, context: AdminContext): void {
  authenticateByCode(login, context);
  auditChanges(login, context);
  takeDocuments(login);
  addConsoleSessionRoute(login, context);
}

/** Adds all routes that require a token, grouped by the kind of their bodies. */
async function addAdminRoutes(admin: AdminApp, context: AdminContext): Promise<void> {
  auditChanges(admin, context);
  const open = new OpenRequests();
  admin.addHook('onClose', async () => open.close());
  requireToken(admin, context, open);
  bindCursors(admin);
  await admin.register(async (documents) => {
    takeDocuments(documents);
    addFleetRoutes(documents, context);
    const counts = new DeviceCounts(context.shards.all);
    addFleetCountRoute(documents, context, counts);
    addDeviceRoutes(documents, context);
    addDeviceChangeRoute(documents, context);
    addAttentionRoute(documents, context, counts);
    addRefusalRoute(documents, context);
    addDiagnosisRoute(documents, context);
    addLockoutRoutes(documents, context);
    const exports = new Transfers(documents, 'exports', context.config.exportsMax);
    addExportRoute(documents, context, exports);
    addReceiptRoutes(documents, context);
    addDeadLetterRoutes(documents, context);
    addBackupRoutes(documents, context);
    addTopRoute(documents, context);
    addServerRoute(documents, context);
    addHoldRoutes(documents, context);
    addTokenRoutes(documents, context, open);
    if (context.config.console) addConsoleCodeRoute(documents, context);
    addClaimTokenRoutes(documents, context);
    addAuditRoutes(documents, context, exports);
    addActionRoutes(documents, context);
    addActionRunRoutes(documents, context);
    addActionStateRoutes(documents, context);
    addForwarderRoutes(documents, context);
    addRecordRoutes(documents, context);
    addSeriesRoute(documents, context);
    addConsumerRoutes(documents, context);
    addBroadcastRoutes(documents, context);
    addSchemaCheckRoute(documents, context);
  });
  await admin.register(async (imports) => {
    takeDocuments(imports);
    addImportRoute(imports, context);
  });
  await admin.register(async (bytes) => {
    takeBytes(bytes);
    addSchemaRoutes(bytes, context);
    addMailRoutes(bytes, context);
  });
}
