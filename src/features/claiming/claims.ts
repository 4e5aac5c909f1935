import { KeyedMutex, KeyedSingleFlight, yieldToEventLoop } from '../../core/async.ts';
import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import type { ClaimedDevice, ClaimRequest, ClaimToken } from '../../declarations/claim-token.ts';
import { type ClaimTokens, unknownToken } from '../../declarations/claim-tokens.ts';
import { type AuditEvent, type AuditLog, auditOwners } from '../../domain/audit-log.ts';
import { digestOf, newDevice } from '../../domain/devices/new-device.ts';
import type { Shard } from '../../domain/shard.ts';
import type { ClaimingConfig } from './config.ts';

export interface ClaimsOptions {
  config: ClaimingConfig;
  claimTokens: ClaimTokens;
  shards: { of(device: DeviceKey): Shard };
  audit: AuditLog;
}

/** Attempts to draw a free id for a device that names none: one in 36^10 is taken. */
const drawsMax = 3;

/**
 * Registers devices that claim themselves. The count of a token is taken, on disk, before the device is created: a
 * crash in between leaves a count used, and never a device too many.
 */
export class Claims {
  readonly #options: ClaimsOptions;
  readonly #underway = new FairShare(0);
  /** Repeatable claims by everything they name: a concurrent repetition joins the first. */
  readonly #repeatable = new KeyedSingleFlight<string, ClaimedDevice>();
  /**
   * Serializes the claims of one device: concurrently, each would take a count before it learns that the id is taken.
   */
  readonly #inTurn = new KeyedMutex<DeviceKey>();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /**
   * @throws ApiError unauthorized, claim_expired, claim_limit_reached, claim_id_refused, invalid_body, already_exists,
   * unavailable.
   */
  async claim(claim: ClaimRequest): Promise<ClaimedDevice> {
    this.#underway.max = this.#options.config.settings.current.claimsQueueMax;
    if (!this.#underway.take(claim.fleetId)) {
      throw unavailable('Too many claims under way, of this fleet or of all (claimsQueueMax). Retry later.');
    }
    try {
      return await this.#claim(claim);
    } finally {
      this.#underway.release(claim.fleetId);
    }
  }

  async #claim(claim: ClaimRequest): Promise<ClaimedDevice> {
    const { claimTokens, audit } = this.#options;
    const token = claimTokens.find(claim.fleetId, claim.claimToken);
    const event = eventOf(claim, token);
    try {
      if (token === undefined) throw unknownToken();
      checkId(claim, token, claimTokens);
      const { deviceId, deviceSecret } = claim;
      if (deviceId === undefined || deviceSecret === undefined) return await this.#admit(claim, token, event);
      const name = `${token.id} ${deviceId} ${deviceSecret}`;
      return await this.#repeatable.run(name, () => this.#admit(claim, token, event));
    } catch (error) {
      const { code, status } = error as ApiError;
      const owner = token === undefined ? auditOwners.nobody : claim.fleetId;
      if (status === 401 || status === 403) audit.refused(owner, event, { status, error: code });
      throw error;
    }
  }

  async #admit(claim: ClaimRequest, token: ClaimToken, event: AuditEvent): Promise<ClaimedDevice> {
    const before = await this.#repeated(claim);
    if (before !== undefined) return before;
    this.#options.claimTokens.check(token);
    if (claim.deviceId === undefined) return this.#store(claim, token, event);
    return this.#inTurn.run(deviceKeyOf(claim.fleetId, claim.deviceId), () =>
      this.#store(claim, token, event),
    );
  }

  async #store(claim: ClaimRequest, token: ClaimToken, event: AuditEvent): Promise<ClaimedDevice> {
    const { audit } = this.#options;
    // Only once the token is valid: only its bearers may learn which ids are taken.
    if (claim.deviceId !== undefined) await this.#checkFree(deviceKeyOf(claim.fleetId, claim.deviceId));
    const begun = await audit.begin('traffic', event);
    try {
      const claimed = await this.#make(claim, token);
      await audit.end(begun, { status: 201, error: null, about: { device_id: claimed.deviceId } });
      return claimed;
    } catch (error) {
      const { code, status } = error instanceof ApiError ? error : new ApiError('internal_error');
      await audit.end(begun, { status, error: code });
      throw error;
    }
  }

  /** The answer to a repeated claim, if the device exists and the claim has its secret. */
  async #repeated({ fleetId, deviceId, deviceSecret }: ClaimRequest): Promise<ClaimedDevice | undefined> {
    if (deviceId === undefined || deviceSecret === undefined) return undefined;
    const device = deviceKeyOf(fleetId, deviceId);
    const found = await this.#options.shards.of(device).devices.credentials(device);
    const digest = Buffer.from(digestOf(deviceSecret));
    const isIts = found?.secretDigests.some((known) => digest.equals(known)) ?? false;
    return isIts ? { fleetId, deviceId, deviceSecret } : undefined;
  }

  async #checkFree(device: DeviceKey): Promise<void> {
    const found = await this.#options.shards.of(device).devices.credentials(device);
    if (found !== undefined) throw new ApiError('already_exists');
  }

  async #make(claim: ClaimRequest, token: ClaimToken): Promise<ClaimedDevice> {
    const { claimTokens, shards } = this.#options;
    await claimTokens.take(token);
    try {
      for (let draws = claim.deviceId === undefined ? drawsMax : 1; draws > 0; draws -= 1) {
        const description = { name: claim.name ?? '', tags: [...token.tags] };
        const { device, secret } = newDevice(claim.fleetId, description, claim.deviceId, claim.deviceSecret);
        const taken = await shards.of(device.device).devices.create([device]);
        if (taken === undefined) {
          return { fleetId: claim.fleetId, deviceId: deviceIdOf(device.device), deviceSecret: secret };
        }
        await yieldToEventLoop();
      }
      throw new ApiError('already_exists');
    } catch (error) {
      // After any other error the device may exist, so the count stays taken.
      const isRefused = error instanceof ApiError && error.options.isOutcomeUnknown !== true;
      if (isRefused) await claimTokens.release(token);
      throw error;
    }
  }
}

function checkId({ deviceId }: ClaimRequest, token: ClaimToken, claimTokens: ClaimTokens): void {
  if (token.idPattern === null) return;
  if (deviceId === undefined) {
    throw new ApiError('invalid_body', { msg: 'With this claim token a device must name its device_id.' });
  }
  if (!claimTokens.takesId(token, deviceId)) throw new ApiError('claim_id_refused');
}

function eventOf({ fleetId, deviceId, address }: ClaimRequest, token: ClaimToken | undefined): AuditEvent {
  const kind = token === undefined ? 'unknown' : 'claim_token';
  return {
    requestId: null,
    by: { kind, id: token?.id ?? null, name: token?.name ?? null },
    method: 'POST',
    route: '/v1/claim',
    about: { fleet_id: fleetId, ...(deviceId !== undefined && { device_id: deviceId }) },
    address,
    forwardedFor: null,
  };
}
