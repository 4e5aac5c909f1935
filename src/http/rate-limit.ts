import { monotonicSeconds } from '../core/clock.ts';
import { type ApiError, rateLimited } from '../core/errors.ts';
import type { HttpContext } from './context.ts';
import type { KnownDevice } from './known-device.ts';

/**
 * Counts a request against its device and against its fleet: the device first, so that one that floods uses
 * up no more of its fleet's share than its own.
 * @throws ApiError rate_limited, naming the limit (D7).
 */
export function checkRate(known: KnownDevice, { config, fleets, rates }: HttpContext, nowMs: number): void {
  const fleet = fleets.get(known.fleetId);
  const deviceMax = fleet?.deviceRequestsPerSecondMax ?? config.deviceRequestsPerSecondMax;
  const fleetMax = fleet?.requestsPerSecondMax ?? config.fleetRequestsPerSecondMax;
  const nowSeconds = monotonicSeconds(nowMs);
  if (deviceMax > 0) {
    const wait = rates.take(known.fingerprint, deviceMax, nowSeconds);
    if (wait > 0) throw tooMany('device', 'deviceRequestsPerSecondMax', deviceMax, wait);
  }
  if (fleetMax > 0) {
    known.fleetBucket ??= rates.fleetBucket(known.fleetId);
    const wait = rates.take(known.fleetBucket, fleetMax, nowSeconds);
    if (wait > 0) throw tooMany('fleet', 'fleetRequestsPerSecondMax', fleetMax, wait);
  }
}

function tooMany(who: string, key: string, perSecondMax: number, waitSeconds: number): ApiError {
  return rateLimited(`This ${who} sends more than ${perSecondMax} requests a second (${key}).`, waitSeconds);
}
