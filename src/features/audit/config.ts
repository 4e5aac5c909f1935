import { type ConfigOf, integer } from '../../core/config/config-key.ts';

/** Limits of the audit log. */
export const auditKeys = {
  auditEntriesMax: integer(
    { default: 100_000, minimum: 100, maximum: 1_000_000, isReloadable: true },
    'Retained entries of the audit log, separately for changes, for mail and claims, and for refused requests. At the limit the oldest of the fleet with the most are removed. Raise it for a longer history.',
  ),
  auditRefusalsPerMinuteMax: integer(
    { default: 60, minimum: 0, maximum: 10_000, isReloadable: true },
    'Audit entries per minute for requests refused for lack of a token or scope, shared by fleets. Further ones are only counted.',
  ),
};

export type AuditConfig = ConfigOf<typeof auditKeys>;
