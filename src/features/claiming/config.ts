import { type ConfigOf, integer } from '../../core/config/config-key.ts';

/** Limits of claims. */
export const claimingKeys = {
  claimsQueueMax: integer(
    { default: 256, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum concurrent claims, shared by fleets: one alone has half. Further ones get 503.',
  ),
};

export type ClaimingConfig = ConfigOf<typeof claimingKeys>;
