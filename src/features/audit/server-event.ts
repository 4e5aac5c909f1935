import type { AuditEvent } from '../../domain/audit-log.ts';

/** An event without a request: a start, or a reload of the configuration. */
export function serverEvent(what: 'START' | 'SIGHUP', about: AuditEvent['about']): AuditEvent {
  const by = { kind: 'server', id: null, name: null } as const;
  return { requestId: null, by, method: what, route: 'server', about, address: null, forwardedFor: null };
}

export const done = { status: 200, error: null };
