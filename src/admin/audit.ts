import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../core/errors.ts';
import type { AuditActor, AuditBook, AuditEvent, AuditLog, BegunEntry } from './audit-log.ts';
import type { AdminApp } from './context.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What a handler has to say of what it did: ids that it gave out, counts. Never a secret. */
    audited: { begun?: BegunEntry; about: Record<string, string | number>; error?: ErrorCode };
  }
}

/** Of one value: names are outside text. */
const textLengthMax = 256;

function cut(text: string): string {
  return text.replace(/\p{Cc}/gu, '\u{fffd}').slice(0, textLengthMax);
}

/** A route whose scope is `read` changes nothing, whatever its method. */
function isChange({ method, routeOptions }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && routeOptions.config.scope !== 'read';
}

function bookOf({ routeOptions }: FastifyRequest): AuditBook {
  return routeOptions.config.scope === 'mail' ? 'traffic' : 'change';
}

function actorOf({ principal }: FastifyRequest): AuditActor {
  if (principal === null) return { kind: 'unknown', id: null, name: null };
  return { kind: principal.kind, id: principal.id, name: principal.name };
}

function eventOf(request: FastifyRequest): AuditEvent {
  const { headers, id, method, params, routeOptions } = request;
  const forwarded = headers['x-forwarded-for'] ?? headers.forwarded;
  const about = Object.entries((params ?? {}) as Record<string, unknown>);
  return {
    requestId: id,
    by: actorOf(request),
    method,
    route: routeOptions.url ?? '',
    about: Object.fromEntries(about.map(([key, value]) => [key, cut(String(value))])),
    address: request.ip,
    forwardedFor: forwarded === undefined ? null : cut(String(forwarded)),
  };
}

/**
 * Has every change that is asked of the routes added from here on in the audit log, with its outcome, and every
 * request that is refused for want of a token or a scope.
 */
export function auditChanges(app: AdminApp, audit: AuditLog): void {
  app.addHook('onRequest', async (request) => {
    request.audited = { about: {} };
  });
  // Behind all checks: what is not well-formed could change nothing.
  app.addHook('preHandler', async (request) => {
    if (isChange(request)) request.audited.begun = await audit.begin(bookOf(request), eventOf(request));
  });
  app.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    const { begun } = request.audited;
    if (begun === undefined) {
      const { statusCode: status } = reply;
      const { error = null } = request.audited;
      if (status === 401 || status === 403) audit.refused(eventOf(request), { status, error });
      return payload;
    }
    const end = (): Promise<void> => {
      const { about, error = null } = request.audited;
      return audit.end(begun, { status: reply.statusCode, error, about });
    };
    // What a stream has done is known when it ends.
    if (isStream(payload)) reply.raw.once('close', end);
    // Mail has a receipt, and its senders are many: its outcome follows, where other changes wait for it.
    else if (begun.entry.book === 'traffic') void end();
    else await end();
    return payload;
  });
}

function isStream(payload: unknown): boolean {
  return typeof (payload as { pipe?: unknown } | null)?.pipe === 'function';
}
