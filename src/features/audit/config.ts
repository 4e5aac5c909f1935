import { integer, reloadable, type ValuesOf } from '../../core/config/config-key.ts';

/** What is kept of who did what. */
export const auditKeys = {
  auditEntriesMax: reloadable(
    integer(
      100_000,
      100,
      1_000_000,
      'Entries of the audit log: as many changes, as many of mail and claims, and as many refused requests; the oldest go of the fleet that has most. Raise it to look further back.',
    ),
  ),
  auditRefusalsPerMinuteMax: reloadable(
    integer(
      60,
      0,
      10_000,
      'Requests refused for want of a token or a scope that have an entry in the audit log, shared by fleets; of others their number is kept.',
    ),
  ),
};

export type AuditConfig = ValuesOf<typeof auditKeys>;
