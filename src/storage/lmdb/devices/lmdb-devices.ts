import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../core/identity.ts';
import type { DeviceCredentials, DeviceStatus, FleetCounts } from '../../../domain/devices/device.ts';
import type {
  CountStep,
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevices,
  Presence,
} from '../../../domain/devices/device-query.ts';
import { type ChangeToken, ShardDevices } from '../../../domain/devices/shard-devices.ts';
import type { Environment } from '../environment/environment.ts';
import { decodeSeen } from '../layout/activity-record.ts';
import { decodeCredentials, decodeDevice } from '../layout/device-record.ts';
import { keyOfDevice, keyOfTag, readDevice, tagDigestBytes } from '../layout/keys.ts';
import { readSize, readWaitingSinceMs } from '../layout/mailbox-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import type { WriteQueue } from '../shard/write-queue.ts';
import { indexedOf, readCounts } from './device-index.ts';
import { countEntries, countStep, searchDevices } from './device-search.ts';
import type { DeviceVersions } from './device-versions.ts';
import { digestOfTag } from './tag-index.ts';

/** Sorts after every device id. */
const afterDevices = '~'.repeat(10);
const neverSeen = { lastSeenMs: undefined, address: undefined };

/** Parts that read and write the devices of a shard. */
interface DeviceParts {
  environment: Environment;
  tables: Tables;
  versions: DeviceVersions;
  presence: Presence;
  queue: WriteQueue;
}

/** The devices of a shard on LMDB: reads in place, on whatever thread asks. */
export class LmdbDevices extends ShardDevices {
  readonly #environment: Environment;
  readonly #tables: Tables;
  readonly #versions: DeviceVersions;
  readonly #presence: Presence;

  constructor({ environment, tables, versions, presence, queue }: DeviceParts) {
    super(presence, queue);
    this.#environment = environment;
    this.#tables = tables;
    this.#versions = versions;
    this.#presence = presence;
  }

  changeToken(device: DeviceKey): ChangeToken {
    return this.#versions.changeToken(device);
  }

  credentials(device: DeviceKey): DeviceCredentials | undefined {
    this.#environment.refresh();
    const bytes = this.#tables.devices.getBinaryFast(keyOfDevice(device));
    return bytes && decodeCredentials(bytes);
  }

  get(device: DeviceKey): DeviceStatus | undefined {
    this.#environment.refresh();
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    return bytes && this.#status(device, bytes, storedJumpsMs(this.#tables.times));
  }

  async countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Promise<number> {
    if (by === 'connected') return Math.min(max, await this.#presence.connectedCount(filter.fleetId));
    this.#environment.refresh();
    return countEntries(this.#tables, by, filter, max);
  }

  countStep(by: 'seen' | 'waiting', filter: DeviceFilter, after: string, scanMax: number): CountStep {
    this.#environment.refresh();
    return countStep(this.#tables, by, filter, after, scanMax);
  }

  fleetCounts(fleetId: string): FleetCounts {
    this.#environment.refresh();
    return readCounts(this.#tables.counts, fleetId);
  }

  ids(fleetId: string, after: string, limit: number): string[] {
    this.#environment.refresh();
    const start = Buffer.from(`${fleetId}${after}\0`, 'latin1');
    const end = Buffer.from(deviceKeyOf(fleetId, afterDevices), 'latin1');
    const keys = [...this.#tables.devices.getKeys({ start, end, limit })];
    return keys.map((key) => deviceIdOf(readDevice(key, 0)));
  }

  /** Checks each device, since tags may share a digest. */
  idsWithTag(fleetId: string, tag: string, after: string, limit: number): string[] {
    this.#environment.refresh();
    const digest = digestOfTag(tag);
    const start = Buffer.from(`${digest}${fleetId}${after}\0`, 'latin1');
    const end = keyOfTag(digest, deviceKeyOf(fleetId, afterDevices));
    const found: string[] = [];
    for (const key of this.#tables.tags.getKeys({ start, end })) {
      const device = readDevice(key, tagDigestBytes);
      const bytes = this.#tables.devices.getBinaryFast(keyOfDevice(device));
      if (bytes !== undefined && indexedOf(bytes).tags.includes(tag)) found.push(deviceIdOf(device));
      if (found.length === limit) break;
    }
    return found;
  }

  protected search(query: DeviceQuery): FoundDevices {
    this.#environment.refresh();
    const jumpsMs = storedJumpsMs(this.#tables.times);
    return searchDevices(this.#tables, query, (device) => this.#readSound(device, jumpsMs));
  }

  protected statusesOf(devices: readonly DeviceKey[]): (DeviceStatus | undefined)[] {
    this.#environment.refresh();
    const jumpsMs = storedJumpsMs(this.#tables.times);
    return devices.map((device) => this.#readSound(device, jumpsMs));
  }

  /** Reads a device; a damaged one counts as missing, so that it does not break a whole page. */
  #readSound(device: DeviceKey, jumpsMs: number): DeviceStatus | undefined {
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    try {
      return bytes && this.#status(device, bytes, jumpsMs);
    } catch {
      return undefined;
    }
  }

  #status(device: DeviceKey, bytes: Buffer, jumpsMs: number): DeviceStatus {
    const decoded = decodeDevice(device, bytes);
    const seen = this.#tables.activity.getBinaryFast(keyOfDevice(device));
    const { lastSeenMs, address } = seen === undefined ? neverSeen : decodeSeen(seen);
    const mailbox = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    const mailboxSize = mailbox === undefined ? 0 : readSize(mailbox);
    const sinceMs = mailbox && readWaitingSinceMs(mailbox);
    const waitingSinceMs = sinceMs && sinceMs + jumpsMs;
    return { ...decoded, mailboxSize, waitingSinceMs, lastSeenMs, lastAddress: address };
  }
}
