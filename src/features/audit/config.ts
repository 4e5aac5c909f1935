import { type ConfigOf, integer, reloadable } from '../../core/config/config-key.ts';

/** Limits of the audit log. */
export const auditKeys = {
  auditEntriesMax: reloadable(
    integer(
      100_000,
      100,
      1_000_000,
      'Retained entries of the audit log, separately for changes, for mail and claims, and for refused requests. At the limit the oldest of the fleet with the most are removed. Raise it for a longer history.',
    ),
  ),
  auditRefusalsPerMinuteMax: reloadable(
    integer(
      60,
      0,
      10_000,
      'Audit entries per minute for requests refused for lack of a token or scope, shared by fleets. Further ones are only counted.',
    ),
  ),
};

export type AuditConfig = ConfigOf<typeof auditKeys>;
