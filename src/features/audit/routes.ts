import type { Handlers } from '../../admin-api/request/routes.ts';
import type { Principal } from '../../admin-api/request/scope.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type { Transfers } from '../../admin-api/request/transfers.ts';
import type { AuditEntryDocument, AuditFilter, auditRoutes } from '../../contract/access/audit.ts';
import { ApiError } from '../../core/errors.ts';
import type { AuditEntry, AuditLog, AuditQuery } from '../../domain/audit-log.ts';

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
  { fleet, token, book, about, from, to }: AuditFilter,
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

async function* lines(audit: AuditLog, query: AuditQuery, signal: AbortSignal): AsyncGenerator<string> {
  for await (const entries of audit.all(query)) {
    signal.throwIfAborted();
    yield entries.map((entry) => `${JSON.stringify(describe(entry))}\n`).join('');
  }
}

/** Handles `/audit` and its export. */
export function auditHandlers(
  { audit }: { audit: AuditLog },
  exports: Transfers,
): Handlers<typeof auditRoutes> {
  return {
    'GET /audit': async ({ query: { after, limit, ...wanted }, principal }) => {
      const { items, next } = await audit.page(queryOf(wanted, principal), after, limit);
      return { items: items.map(describe), next };
    },
    'GET /audit:export': async ({ query, principal }, reply) => {
      const wanted = queryOf(query, principal);
      const owner = principal?.fleetId ?? '*';
      const answer = exports.begin(reply, owner, (signal) => lines(audit, wanted, signal));
      return reply.type('application/x-ndjson').send(answer);
    },
  };
}
