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

/**
 * True if it was refused lately, and not accepted since. One request may have been a single mistake, which says nothing
 * of now; with the wrong credentials, nothing else is accepted either.
 */
export function isCurrent({ code, count, lastMs, acceptedMs = 0 }: Refusal, nowMs: number): boolean {
  const withinMs = count > 1 || code === 'unauthorized' ? recentMs : callsMs;
  return nowMs - lastMs <= withinMs && acceptedMs <= lastMs;
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

/** Why a device was refused; undefined if not the device was. */
export function pastReasonOf({ code, detail }: Refusal): DeviceRefusalReason | undefined {
  if (codesOfSenders.includes(code)) return undefined;
  if (code === 'rate_limited' || code === 'schema_mismatch') return code;
  if (detail === 'device_secret_incorrect') return 'wrong_secret';
  return detail === 'device_disabled' ? 'disabled' : 'other';
}

/** Why a device is refused now; undefined if it is no more. */
export function reasonOf(refusal: Refusal, nowMs: number): DeviceRefusalReason | undefined {
  const isNow =
    refusal.code === 'rate_limited' ? limitedShare(refusal, nowMs) !== undefined : isCurrent(refusal, nowMs);
  return isNow ? pastReasonOf(refusal) : undefined;
}
