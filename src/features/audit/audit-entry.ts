import { fleetIdPattern } from '../../core/identity.ts';
import type { AuditEntry, AuditEvent, AuditOutcome, AuditQuery } from '../../domain/audit-log.ts';
import { auditOwners } from '../../domain/audit-log.ts';

/** An entry without what the log assigns: number, book, owner and time. */
export type AuditContent = Omit<AuditEntry, 'number' | 'book' | 'owner' | 'timeMs'>;

/** An event without a request: a start, or a reload of the configuration. */
export function serverEvent(what: 'START' | 'SIGHUP', about: AuditEvent['about']): AuditEvent {
  const by = { kind: 'server', id: null, name: null } as const;
  return { requestId: null, by, method: what, route: 'server', about, address: null, forwardedFor: null };
}

/** The outcome of such an event, which is noted once it has happened. */
export const done = { status: 200, error: null };

/** The owner of an event that was authorized: the fleet it is about. */
export function ownerOfEvent({ about }: AuditEvent): string {
  const fleetId = String(about.fleet_id ?? '');
  return fleetIdPattern.test(fleetId) ? fleetId : auditOwners.server;
}

/** The content of an event without an outcome yet. */
export function begunContent(event: AuditEvent): AuditContent {
  return { ...event, status: null, error: null, omitted: 0 };
}

/** Adds the outcome, and what became known on the way. */
export function withOutcome<C extends AuditContent>(content: C, { about, ...outcome }: AuditOutcome): C {
  return { ...content, ...outcome, about: { ...content.about, ...about } };
}

/** True if a decoded value is the content of an entry. */
export function isContent(read: unknown): read is AuditContent {
  const { by, method, route, about, status } = (read ?? {}) as Partial<AuditContent>;
  return (
    typeof by?.kind === 'string' &&
    typeof method === 'string' &&
    typeof route === 'string' &&
    typeof about === 'object' &&
    (status === null || typeof status === 'number')
  );
}

/** True if an entry matches the query. */
export function matchesAuditQuery({ by, book, about, timeMs }: AuditEntry, query: AuditQuery): boolean {
  const { fleetId, token, fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = query;
  if (fleetId !== undefined && about.fleet_id !== fleetId) return false;
  if (query.book !== undefined && book !== query.book) return false;
  if (query.about !== undefined && !Object.values(about).includes(query.about)) return false;
  if (token !== undefined && (by.kind === 'bootstrap' ? 'bootstrap' : by.id) !== token) return false;
  return timeMs >= fromMs && timeMs < toMs;
}
