import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../../core/config/settings.ts';
import { type ErrorCode, rateLimited } from '../../core/errors.ts';
import { RateLimiters } from '../../core/limits/rate-limiter.ts';
import {
  type AuditActor,
  type AuditBook,
  type AuditEvent,
  type AuditLog,
  auditOwners,
  type BegunEntry,
} from '../../domain/audit-log.ts';
import { type AdminApp, routeOf } from '../request/admin-app.ts';
import type { Principal } from '../request/scope.ts';

interface Needs {
  audit: AuditLog;
  config: { readonly settings: Settings<{ tokenChangesPerSecondMax: number }> };
}

/** Length of a burst, so that a setup script is not slowed down. */
const burstSeconds = 10;

/**
 * Limits the changes per second of each token: each is written to the audit log twice, and a flood would within minutes
 * displace its fleet's earlier entries. Mail does not count as a change.
 */
class ChangeRate {
  readonly #settings: Settings<{ tokenChangesPerSecondMax: number }>;
  readonly #tokens = new RateLimiters(burstSeconds);

  constructor(settings: Settings<{ tokenChangesPerSecondMax: number }>) {
    this.#settings = settings;
  }

  /** @throws ApiError rate_limited. */
  take({ id }: Pick<Principal, 'id'>): void {
    const { tokenChangesPerSecondMax: perSecondMax } = this.#settings.current;
    if (perSecondMax === 0) return;
    const wait = this.#tokens.of(id ?? 'bootstrap').take(perSecondMax);
    if (wait === 0) return;
    throw rateLimited(
      `This token makes more than ${perSecondMax} changes a second (tokenChangesPerSecondMax). Retry later.`,
      wait,
    );
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Details that a handler adds to its audit entry: ids it assigned, counts. Never a secret. */
    audited: { begun?: BegunEntry; about: Record<string, string | number>; error?: ErrorCode };
  }
}

/** Maximum length of one value: names are user input. */
const textLengthMax = 256;

function cut(text: string): string {
  return text.replace(/\p{Cc}/gu, '\u{fffd}').slice(0, textLengthMax);
}

function bounded(about: AuditEvent['about']): AuditEvent['about'] {
  const values = Object.entries(about);
  return Object.fromEntries(
    values.map(([key, value]) => [key, typeof value === 'string' ? cut(value) : value]),
  );
}

/** Counts each outcome of a bulk change. */
export function countsOf(results: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) counts[result] = (counts[result] ?? 0) + 1;
  return counts;
}

/** Returns undefined for what changes nothing: a route with scope `read` does not, whatever its method. */
function bookOf(request: FastifyRequest): AuditBook | undefined {
  const { method, routeOptions } = request;
  const { book, scope } = routeOptions.config;
  if (book !== undefined) return typeof book === 'function' ? book(request) : book;
  return method !== 'GET' && method !== 'HEAD' && scope !== 'read' ? 'change' : undefined;
}

function actorOf({ principal }: FastifyRequest): AuditActor {
  if (principal === null) return { kind: 'unknown', id: null, name: null };
  return { kind: principal.kind, id: principal.id, name: principal.name };
}

function ownerOf({ fleetId }: Principal): string {
  return fleetId ?? auditOwners.server;
}

function eventOf(request: FastifyRequest): AuditEvent {
  const { headers, id, method, params } = request;
  const forwarded = headers['x-forwarded-for'] ?? headers.forwarded;
  const about = Object.entries((params ?? {}) as Record<string, unknown>);
  return {
    requestId: id,
    by: actorOf(request),
    method,
    route: routeOf(request) ?? '',
    about: Object.fromEntries(about.map(([key, value]) => [key, cut(String(value))])),
    address: request.ip,
    forwardedFor: forwarded === undefined ? null : cut(String(forwarded)),
  };
}

/** Prepares every request, because one refused before the audit hooks run gets an entry too. */
export function prepareAudit(app: AdminApp): void {
  app.addHook('onRequest', async (request) => {
    request.audited = { about: {} };
  });
}

/**
 * Writes every change requested on the routes added from here on to the audit log, with its outcome, and every request
 * refused for lack of a token or a scope.
 */
export function auditChanges(app: AdminApp, { audit, config }: Needs): void {
  const rate = new ChangeRate(config.settings);
  // After validation: a malformed request changes nothing.
  app.addHook('preHandler', async (request) => {
    const book = bookOf(request);
    if (book === 'change' && request.principal !== null) rate.take(request.principal);
    if (book !== undefined) request.audited.begun = await audit.begin(book, eventOf(request));
  });
  app.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    const { begun } = request.audited;
    if (begun === undefined) {
      const { statusCode: status } = reply;
      const { error = null } = request.audited;
      const owner = request.principal === null ? auditOwners.nobody : ownerOf(request.principal);
      if (status === 401 || status === 403) audit.refused(owner, eventOf(request), { status, error });
      return payload;
    }
    const end = (cutOff = false): Promise<void> => {
      const { about, error = null } = request.audited;
      const outcome = { status: reply.statusCode, error: cutOff ? 'cut_off' : error };
      return audit.end(begun, { ...outcome, about: bounded(about) });
    };
    // The outcome of a stream is known when it ends, after its status was sent.
    if (isStream(payload)) reply.raw.once('close', () => void end(!reply.raw.writableFinished));
    // Mail has a receipt and many senders, so its answer does not wait for the entry; that of other changes does.
    else if (begun.entry.book === 'traffic') void end();
    else await end();
    return payload;
  });
}

function isStream(payload: unknown): boolean {
  return typeof (payload as { pipe?: unknown } | null)?.pipe === 'function';
}
