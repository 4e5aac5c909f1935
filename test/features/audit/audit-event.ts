import type { AuditEvent } from '../../../src/domain/audit-log.ts';

/** Event by a caller who is named as nobody should be. */
export function eventOf(about: AuditEvent['about'], more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    requestId: 'request',
    by: { kind: 'token', id: 'token-1', name: 'Auditor\u0000s \ud800 friend' },
    method: 'POST',
    route: '/admin/v1/fleets/:fleet_id/devices',
    about,
    address: '192.0.2.1',
    forwardedFor: null,
    ...more,
  };
}
