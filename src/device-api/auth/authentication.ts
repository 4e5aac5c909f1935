import { hash, timingSafeEqual } from 'node:crypto';
import type { Awaitable } from '../../core/async.ts';
import { ApiError, type CredentialDetail } from '../../core/errors.ts';
import { deviceIdPattern, deviceKeyOf, deviceSecretPattern, fleetIdPattern } from '../../core/identity.ts';
import type { Authentication, DeviceCredentials } from '../../domain/devices/device.ts';
import type { HttpContext } from '../server/context.ts';
import type { RequestHeaders } from '../server/request-headers.ts';
import { CachedDevice } from './cached-device.ts';

const texts: Record<CredentialDetail, string> = {
  invalid_credentials: 'X-Fleet-ID, X-Device-ID and X-Device-Secret are required.',
  invalid_fleet_id: 'X-Fleet-ID must be 8 letters or digits.',
  invalid_device_id: 'X-Device-ID must be 10 letters or digits.',
  invalid_device_secret: 'X-Device-Secret must be FOS- and 32 letters or digits.',
  fleet_not_found: 'There is no such fleet.',
  device_not_found: 'This fleet has no such device.',
  device_secret_incorrect: 'The device secret is wrong.',
  device_disabled: 'The device has been disabled.',
  unknown: 'The credentials were not accepted.',
};

function malformed(detail: CredentialDetail): ApiError {
  return new ApiError('malformed_credentials', { detail, msg: texts[detail] });
}

function refused(detail: CredentialDetail): ApiError {
  return new ApiError('unauthorized', { detail, msg: texts[detail] });
}

/**
 * Makes D4's checks in D4's order, with D6's lockout before the secret is compared. Reads the client's address only
 * when a check needs it.
 * @throws ApiError malformed_credentials, fleet_host_mismatch, unauthorized, rate_limited.
 */
export function authenticate(
  headers: RequestHeaders,
  context: HttpContext,
  client: { readonly address: string },
): Awaitable<CachedDevice> {
  const { fleetId, deviceId, secret } = headers;
  const { lockouts } = context;
  const cached = context.deviceCache.get(deviceId);
  // A cached device has passed every check below and has not changed since.
  if (cached?.isValid && cached.fleetId === fleetId && cached.accepts(secret)) {
    const isSettled =
      context.config.settings.current.hostSuffix === '' && !lockouts.isGuarded(cached.fingerprint);
    // Its fleet may be being deleted, and it not yet.
    if (isSettled && context.fleets.get(fleetId) !== undefined) return cached;
  }
  if (fleetId === '' || deviceId === '' || secret === '') throw malformed('invalid_credentials');
  if (!fleetIdPattern.test(fleetId)) throw malformed('invalid_fleet_id');
  if (!deviceIdPattern.test(deviceId)) throw malformed('invalid_device_id');
  if (!deviceSecretPattern.test(secret)) throw malformed('invalid_device_secret');
  const { hostSuffix } = context.config.settings.current;
  if (hostSuffix !== '') checkHost(headers.host, hostSuffix, fleetId);
  const device = deviceKeyOf(fleetId, deviceId);
  const fingerprint = lockouts.fingerprint(device);
  lockouts.check(device, fingerprint, client);
  if (context.fleets.get(fleetId) === undefined) {
    lockouts.failed(device, client);
    throw refused('fleet_not_found');
  }
  const shard = context.shards.of(device);
  const changeToken = shard.devices.changeToken(device);
  const admit = (found: Authentication | undefined, from: { readonly address: string }): CachedDevice => {
    let untilMs: number | undefined;
    try {
      untilMs = checkSecret(secretDigest(secret), found);
    } catch (error) {
      lockouts.failed(device, from);
      throw error;
    }
    const admitted = new CachedDevice({
      device,
      fleetId,
      shard,
      secret,
      fingerprint,
      changeToken,
      untilMs,
      mailboxSize: found?.mailboxSize,
    });
    if (changeToken !== undefined) context.deviceCache.put(admitted);
    return admitted;
  };
  const credentials = shard.devices.credentials(device);
  if (!(credentials instanceof Promise)) return admit(credentials, client);
  // Read now: it is no longer available if the client disconnects meanwhile.
  const { address } = client;
  return credentials.then((found) => admit(found, { address }));
}

/** Checks that a host under the suffix names this fleet (D5). @throws ApiError fleet_host_mismatch. */
export function checkHost(host: string, suffix: string, fleetId: string): void {
  const name = host.replace(/:\d+$/, '').toLowerCase();
  const ending = `.${suffix.toLowerCase()}`;
  if (!name.endsWith(ending)) return;
  if (name.slice(0, -ending.length) !== fleetId.toLowerCase()) throw new ApiError('fleet_host_mismatch');
}

/** Hashes a secret as it is stored (D3). */
export function secretDigest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/**
 * Compares with every stored digest, each in constant time, whichever matches (D3). Returns when this secret
 * expires, if it does.
 * @throws ApiError unauthorized.
 */
export function checkSecret(digest: Buffer, found: DeviceCredentials | undefined): number | undefined {
  if (found === undefined) throw refused('device_not_found');
  let matching: Uint8Array | undefined;
  for (const stored of found.secretDigests) if (timingSafeEqual(stored, digest)) matching = stored;
  const untilMs = matching === found.secretDigests.at(-1) ? found.oldSecretUntilMs : undefined;
  if (matching === undefined || (untilMs !== undefined && Date.now() >= untilMs))
    throw refused('device_secret_incorrect');
  if (!found.enabled) throw refused('device_disabled');
  return untilMs;
}
