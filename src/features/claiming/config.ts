import { integer, reloadable, type ValuesOf } from '../../core/config/config-key.ts';

/** Whether and how devices may register themselves. */
export const claimingKeys = {
  claimsQueueMax: reloadable(
    integer(
      256,
      1,
      100_000,
      'Claims under way at once, shared by fleets: one alone has half; one more is answered 503.',
    ),
  ),
};

export type ClaimingConfig = ValuesOf<typeof claimingKeys>;
