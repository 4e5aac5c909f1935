import { sleep } from '../../../core/async.ts';
import { isUnavailable } from '../../../core/errors.ts';
import { groupBy } from '../../../core/groups.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../core/identity.ts';
import { RateLimiter } from '../../../core/limits/rate-limiter.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { Broadcast } from '../../../domain/mail/broadcast.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { BroadcastConfig } from '../config.ts';
import type { Delivered, Job } from './job.ts';

/** Mails per write: half a millisecond of the shard's thread, for which devices wait. */
const batchMax = 16;
const batchesPerSecond = 10;
const chunkMax = 1_024;

/** Limits the rate of all broadcasts together; unused capacity is not carried over. */
export class MailRate {
  readonly #config: BroadcastConfig;
  readonly #limiter = new RateLimiter(0);

  constructor(config: BroadcastConfig) {
    this.#config = config;
  }

  /** Smaller at low rates, so that mails come evenly and a pause takes effect soon. */
  get batchSize(): number {
    return Math.min(
      batchMax,
      Math.ceil(this.#config.settings.current.broadcastMailsPerSecondMax / batchesPerSecond),
    );
  }

  /** Devices between two saves of the progress. */
  get chunkSize(): number {
    return Math.min(
      chunkMax,
      Math.max(this.batchSize, Math.ceil(this.#config.settings.current.broadcastMailsPerSecondMax / 2)),
    );
  }

  /** Settles when that many mails may be sent. */
  async take(mails: number): Promise<void> {
    const { broadcastMailsPerSecondMax: perSecondMax } = this.#config.settings.current;
    const wait = this.#limiter.wait(perSecondMax, mails);
    this.#limiter.spend(perSecondMax, mails);
    await sleep(wait * 1_000);
  }
}

export interface DeliveryOptions {
  config: BroadcastConfig;
  fleets: Fleets;
  shards: { of(device: DeviceKey): Shard };
  rate: MailRate;
  log: Log;
}

const retryMs = 100;
/** Attempts at a batch whose shard is full or away, before the broadcast gives up its turn for others. */
const attemptsMax = 4;
/** Attempts at a device for which its shard fails without being full, so that the others do not wait for it. */
const failuresMax = 3;

/**
 * Sends the mail of a broadcast to the shards, one batch at a time per shard whatever the number of broadcasts, so
 * that their share of a shard's queue and thread stays small for the sake of devices.
 */
export class BroadcastDelivery {
  readonly #options: DeliveryOptions;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /**
   * Calls `shouldContinue` before each batch and each retry of one. Not whole although it should continue: a shard takes
   * none at present.
   */
  async send(
    fleetId: string,
    id: Uint8Array,
    job: Job,
    deviceIds: readonly string[],
    shouldContinue: () => boolean,
  ): Promise<Delivered> {
    const delivered: Delivered = { queued: 0, refused: [], isWhole: true };
    const keys = deviceIds.map((deviceId) => deviceKeyOf(fleetId, deviceId));
    const groups = groupBy(keys, (device) => this.#options.shards.of(device));
    const mail = this.#mailOf(fleetId, job);
    await Promise.all(
      [...groups].map(async ([shard, devices]) => {
        const { batchSize } = this.#options.rate;
        for (let start = 0; start < devices.length && shouldContinue(); start += batchSize) {
          const batch = devices.slice(start, start + batchSize);
          await this.#options.rate.take(batch.length);
          const broadcast = { broadcast: id, devices: batch, mail };
          if (!(await this.#sendBatch(shard, broadcast, shouldContinue, delivered)))
            delivered.isWhole = false;
          if (!delivered.isWhole) return;
        }
      }),
    );
    if (!shouldContinue()) delivered.isWhole = false;
    return delivered;
  }

  /** Applies the fleet's current limits, as a broadcast may take hours. */
  #mailOf(fleetId: string, { request: { pauseAfter: _, ...request }, payload }: Job): Broadcast['mail'] {
    const { config, fleets } = this.#options;
    const fleet = fleets.get(fleetId);
    const requeuesMax = request.requeuesMax ?? fleet?.mailRequeuesMax;
    return {
      ...request,
      payload,
      ...(requeuesMax !== undefined && { requeuesMax }),
      ttlSeconds: request.ttlSeconds ?? fleet?.mailTtlSeconds ?? config.settings.current.mailTtlSeconds,
      mailboxMailsMax:
        request.mailboxMailsMax ?? fleet?.mailboxMailsMax ?? config.settings.current.mailboxMailsMax,
    };
  }

  /** Returns false if the shard takes none at present, or it was told to end before. */
  async #sendBatch(
    shard: Shard,
    batch: Broadcast,
    shouldContinue: () => boolean,
    delivered: Delivered,
  ): Promise<boolean> {
    let failures = 0;
    for (let attempt = 0; attempt < attemptsMax && shouldContinue(); attempt += 1) {
      try {
        const { queued, refused } = await shard.mail.broadcast(batch);
        delivered.queued += queued;
        for (const { device, reason } of refused) {
          delivered.refused.push({ deviceId: deviceIdOf(device), reason });
        }
        return true;
      } catch (error) {
        const isFull = isUnavailable(error);
        if (!isFull && batch.devices.length > 1)
          return this.#sendEach(shard, batch, shouldContinue, delivered);
        if (!isFull) failures += 1;
        if (failures === failuresMax) {
          const [device] = batch.devices;
          const deviceId = device === undefined ? '' : deviceIdOf(device);
          this.#options.log.error({ err: error, device: deviceId }, 'broadcast mail failed; device skipped');
          delivered.refused.push({ deviceId, reason: 'not_stored' });
          return true;
        }
        await sleep(retryMs * 2 ** attempt);
      }
    }
    return false;
  }

  /** Finds the device that a batch fails for. */
  async #sendEach(
    shard: Shard,
    batch: Broadcast,
    shouldContinue: () => boolean,
    delivered: Delivered,
  ): Promise<boolean> {
    for (const device of batch.devices) {
      const isDone = await this.#sendBatch(shard, { ...batch, devices: [device] }, shouldContinue, delivered);
      if (!isDone) return false;
    }
    return true;
  }
}
