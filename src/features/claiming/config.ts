import { type ConfigOf, integer, reloadable } from '../../core/config/config-key.ts';

/** Limits of claims. */
export const claimingKeys = {
  claimsQueueMax: reloadable(
    integer(
      256,
      1,
      100_000,
      'Maximum concurrent claims, shared by fleets: one alone has half. Further ones get 503.',
    ),
  ),
};

export type ClaimingConfig = ConfigOf<typeof claimingKeys>;
