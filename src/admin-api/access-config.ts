import { boolean, integer } from '../core/config/config-key.ts';

/** Who may do what, and what is kept of who did what. */
export const accessKeys = {
  bootstrapToken: boolean(
    true,
    'Whether the token in DATA/admin.json may do everything; off, it may nothing.',
  ),
  apiTokensMax: integer(1_000, 1, 100_000, 'API tokens of this server, expired ones among them.'),
  auditEntriesMax: integer(
    100_000,
    100,
    1_000_000,
    'Entries of the audit log: as many changes, as many of mail and claims, and as many refused requests; the oldest go of the fleet that has most.',
  ),
  auditRefusalsPerMinuteMax: integer(
    60,
    0,
    10_000,
    'Requests refused for want of a token or a scope that have an entry in the audit log, shared by fleets; of others their number is kept.',
  ),
  tokenChangesPerSecondMax: integer(
    100,
    0,
    100_000,
    'Changes by one token of the admin API, mail not counted; beyond ten times as many at once, 429; 0 for no limit.',
  ),
  exportsMax: integer(
    16,
    1,
    1_000,
    'Exports of devices and of the audit log under way, shared by fleets: one alone has half; one more is answered 503.',
  ),
  claiming: boolean(false, 'Whether devices may register themselves, with a claim token, at POST /v1/claim.'),
  claimTokensPerFleetMax: integer(100, 1, 10_000, 'Claim tokens of one fleet.'),
  claimsQueueMax: integer(
    256,
    1,
    100_000,
    'Claims under way at once, shared by fleets: one alone has half; one more is answered 503.',
  ),
};
