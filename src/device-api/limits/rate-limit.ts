import { monotonicSeconds } from '../../core/clock.ts';
import { type ApiError, rateLimited } from '../../core/errors.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import type { HttpContext } from '../server/context.ts';
import type { RequestRates } from './request-rates.ts';

/**
 * Counts a request and the declared bytes of its body against its device, and the request against its fleet: the
 * device first, so that one that floods uses no more of its fleet's rate than its own.
 * @throws ApiError rate_limited, naming the limit (D7).
 */
export function checkRate(
  known: CachedDevice,
  { config, fleets, rates }: HttpContext,
  nowMs: number,
  declaredBytes: number,
): void {
  const fleet = fleets.get(known.fleetId);
  const deviceMax = fleet?.deviceRequestsPerSecondMax ?? config.settings.current.deviceRequestsPerSecondMax;
  const fleetMax = fleet?.requestsPerSecondMax ?? config.settings.current.fleetRequestsPerSecondMax;
  const nowSeconds = monotonicSeconds(nowMs);
  if (deviceMax > 0) {
    const wait = rates.take(known.fingerprint, deviceMax, nowSeconds);
    if (wait > 0) throw tooMany('device', 'requests', 'deviceRequestsPerSecondMax', deviceMax, wait);
  }
  // A body that is too large is refused, so its bytes are not counted.
  if (declaredBytes > 0 && declaredBytes <= config.bodyBytesMax) {
    const bytesMax = fleet?.deviceBytesPerSecondMax ?? config.settings.current.deviceBytesPerSecondMax;
    takeBytes(known, rates, bytesMax, nowSeconds, declaredBytes);
  }
  if (fleetMax > 0) {
    known.fleetBucket ??= rates.bucketOf(known.fleetId);
    const wait = rates.take(known.fleetBucket, fleetMax, nowSeconds);
    if (wait > 0) throw tooMany('fleet', 'requests', 'fleetRequestsPerSecondMax', fleetMax, wait);
  }
}

/** Counts the bytes of a chunked body, once its size is known. @throws ApiError rate_limited. */
export function checkBytes(known: CachedDevice, context: HttpContext, bytes: number): void {
  takeBytes(known, context.rates, bytesPerSecondMaxOf(known, context), monotonicSeconds(), bytes);
}

/**
 * Counts bytes that the server writes for a device, however many: only what it wrote before is a reason to refuse them.
 * Or those of a sync, whose body has taken from the same bucket, might never pass.
 * @throws ApiError rate_limited.
 */
export function checkWrittenBytes(known: CachedDevice, context: HttpContext, bytes: number): void {
  checkBytes(known, context, 0);
  addBytes(known, context, bytes);
}

/** Counts bytes of a request that has passed already: later ones wait for them. */
export function addBytes(known: CachedDevice, context: HttpContext, bytes: number): void {
  const { rates } = context;
  const bytesMax = bytesPerSecondMaxOf(known, context);
  if (bytesMax > 0 && bytes > 0)
    rates.spend(rates.bytesBucket(known.fingerprint), bytesMax, monotonicSeconds(), bytes);
}

/** The fleet's own limit, else the configured one; 0 for none. */
function bytesPerSecondMaxOf({ fleetId }: CachedDevice, { config, fleets }: HttpContext): number {
  return fleets.get(fleetId)?.deviceBytesPerSecondMax ?? config.settings.current.deviceBytesPerSecondMax;
}

function takeBytes(
  { fingerprint }: CachedDevice,
  rates: RequestRates,
  perSecondMax: number,
  nowSeconds: number,
  bytes: number,
): void {
  if (perSecondMax === 0) return;
  const wait = rates.take(rates.bytesBucket(fingerprint), perSecondMax, nowSeconds, bytes);
  if (wait > 0) throw tooMany('device', 'bytes', 'deviceBytesPerSecondMax', perSecondMax, wait);
}

function tooMany(
  who: string,
  what: string,
  key: string,
  perSecondMax: number,
  waitSeconds: number,
): ApiError {
  return rateLimited(
    `This ${who} sends more than ${perSecondMax} ${what} a second (${key}). Retry later.`,
    waitSeconds,
  );
}
