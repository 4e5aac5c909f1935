import type { Refusal } from './refusals.ts';

/** Why a device is refused; the words of the API. */
export type DeviceRefusalReason = 'wrong_secret' | 'schema_mismatch' | 'rate_limited' | 'disabled' | 'other';

/** Refusals within this time say what is wrong now. */
export const recentMs = 3_600_000;
/** Whoever was refused within this time still calls. */
export const callsMs = 600_000;
/** Share of requests refused for a rate that is no coincidence. */
const limitedShareMin = 0.1;
/** Refused to senders of mail, not to the device. */
const codesOfSenders: readonly string[] = ['mailbox_full', 'fleet_mail_full', 'limit_reached'];

/** True if it was refused lately, and not accepted since. */
export function isCurrent({ lastMs, acceptedMs = 0 }: Refusal, nowMs: number): boolean {
  return nowMs - lastMs <= recentMs && acceptedMs <= lastMs;
}

/**
 * Share of its requests in the last minutes that a device at a rate was refused; undefined if that may be a coincidence.
 * Whatever was accepted since: behind such a refusal the next request is always taken.
 */
export function limitedShare({ requests, lastMs }: Refusal, nowMs: number): number | undefined {
  if (requests === undefined || nowMs - lastMs > callsMs) return undefined;
  const { limited, accepted } = requests;
  const share = limited / (limited + accepted);
  return limited === 0 || share < limitedShareMin ? undefined : share;
}

/** Why a device is refused now; undefined if it is no more. */
export function reasonOf(refusal: Refusal, nowMs: number): DeviceRefusalReason | undefined {
  const { code, detail } = refusal;
  if (code === 'rate_limited') return limitedShare(refusal, nowMs) === undefined ? undefined : 'rate_limited';
  if (!isCurrent(refusal, nowMs) || codesOfSenders.includes(code)) return undefined;
  if (detail === 'device_secret_incorrect') return 'wrong_secret';
  if (detail === 'device_disabled') return 'disabled';
  return code === 'schema_mismatch' ? 'schema_mismatch' : 'other';
}
