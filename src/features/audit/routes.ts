import type { Readable } from 'node:stream';
import { type Static, Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import type { Principal } from '../../admin-api/request/scope.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type { Transfers } from '../../admin-api/request/transfers.ts';
import { type AuditEntryDocument, auditEntryDocument } from '../../contract/access/audit.ts';
import { errorAnswers, listOf, pageLimit, wordOf } from '../../contract/document.ts';
import { ApiError } from '../../core/errors.ts';
import { type AuditEntry, type AuditLog, type AuditQuery, auditBooks } from '../../domain/audit-log.ts';

interface Needs {
  audit: AuditLog;
}

const filter = {
  book: Type.Optional(
    wordOf(auditBooks, { description: 'Changes, traffic of mail and claims, or refused requests.' }),
  ),
  about: Type.Optional(
    Type.String({
      maxLength: 256,
      description: 'Only entries that name this in `about`: the id of a device, the name of a forwarder.',
    }),
  ),
  fleet: Type.Optional(Type.String({ maxLength: 8 })),
  token: Type.Optional(Type.String({ maxLength: 36, description: 'Id of a token, or `bootstrap`.' })),
  from: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601.' })),
  to: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601, exclusive.' })),
};
const filterQuery = Type.Object(filter);

function describe(entry: AuditEntry): AuditEntryDocument {
  return {
    entry: entry.number,
    time: timeTextOf(entry.timeMs),
    book: entry.book,
    by: entry.by,
    method: entry.method,
    route: entry.route,
    about: { ...entry.about },
    status: entry.status,
    error: entry.error,
    address: entry.address,
    forwarded_for: entry.forwardedFor,
    request_id: entry.requestId,
    omitted: entry.omitted,
  };
}

/** @throws ApiError bad_request for an invalid time; forbidden for a fleet other than the token's. */
function queryOf(
  { fleet, token, book, about, from, to }: Static<typeof filterQuery>,
  principal: Principal | null,
): AuditQuery {
  const own = principal?.fleetId ?? undefined;
  if (own !== undefined && fleet !== undefined && fleet !== own) throw new ApiError('forbidden');
  const fleetId = own ?? fleet;
  return {
    ...(fleetId !== undefined && { fleetId }),
    ...(token !== undefined && { token }),
    ...(book !== undefined && { book }),
    ...(about !== undefined && { about }),
    ...(from !== undefined && { fromMs: parseTime('from', from) }),
    ...(to !== undefined && { toMs: parseTime('to', to) }),
  };
}

function parseTime(name: string, text: string): number {
  const timeMs = Date.parse(/^\d{4}-\d{2}-\d{2}/.test(text) ? text : '');
  if (!Number.isNaN(timeMs)) return timeMs;
  throw new ApiError('bad_request', { errors: [{ path: `/${name}`, msg: 'must be a time in ISO 8601' }] });
}

const listing = {
  summary: 'List entries of the audit log',
  description: 'Newest first. With a filter a page may be short although `next` is set.',
  querystring: Type.Object({
    ...filter,
    after: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 48 - 2 })),
    limit: pageLimit,
  }),
  response: { 200: listOf(auditEntryDocument), ...errorAnswers },
};

const listEntries =
  ({ audit }: Needs): Handler<typeof listing> =>
  async ({ query: { after, limit, ...wanted }, principal }) => {
    const { items, next } = await audit.page(queryOf(wanted, principal), after, limit);
    return { items: items.map(describe), next };
  };

async function* lines(audit: AuditLog, query: AuditQuery, signal: AbortSignal): AsyncGenerator<string> {
  for await (const entries of audit.all(query)) {
    signal.throwIfAborted();
    yield entries.map((entry) => `${JSON.stringify(describe(entry))}\n`).join('');
  }
}

const exporting = {
  summary: 'Export the audit log',
  description: 'All entries up to now, oldest first, one per line.',
  querystring: filterQuery,
  response: {
    200: {
      description: 'The entries.',
      content: { 'application/x-ndjson': { schema: Type.Unsafe<Readable>({ type: 'string' }) } },
    },
    ...errorAnswers,
  },
};

const exportEntries =
  ({ audit }: Needs, exports: Transfers): Handler<typeof exporting> =>
  async ({ query, principal }, reply) => {
    const wanted = queryOf(query, principal);
    const owner = principal?.fleetId ?? '*';
    const answer = exports.begin(reply, owner, (signal) => lines(audit, wanted, signal));
    return reply.type('application/x-ndjson').send(answer);
  };

/** `/audit` and its export. */
export function addAuditRoutes(app: AdminApp, context: Needs, exports: Transfers): void {
  const route = routesOf(app);
  route('GET', '/audit', 'admin', listing, listEntries(context), { narrowsToFleet: true });
  route('GET', '/audit::export', 'admin', exporting, exportEntries(context, exports), {
    narrowsToFleet: true,
  });
}
