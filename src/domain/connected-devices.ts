import { type DeviceKey, deviceHash, deviceIdOf, fleetIdOf } from '../core/identity.ts';
import type { ConnectedDevice, Presence } from './devices/device-query.ts';

/** Hash buckets per fleet, so that a page sorts the few devices of some buckets and never all connected ones. */
const bucketsMax = 4_096;
const bucketDigits = 3;

interface FleetPresence {
  count: number;
  buckets: Map<number, DeviceKey[]>;
}

/** The devices of a shard with open event streams, in the order of a hash of their ids, which spreads evenly. */
export class ConnectedDevices implements Presence {
  readonly #fleets = new Map<string, FleetPresence>();
  readonly #onChange: (change: 1 | -1) => void;

  /** `onChange` is called for each device that connects or disconnects. */
  constructor(onChange: (change: 1 | -1) => void = () => {}) {
    this.#onChange = onChange;
  }

  add(device: DeviceKey): void {
    const fleetId = fleetIdOf(device);
    let fleet = this.#fleets.get(fleetId);
    if (fleet === undefined) {
      fleet = { count: 0, buckets: new Map() };
      this.#fleets.set(fleetId, fleet);
    }
    const bucket = hashBucketOf(device);
    const devices = fleet.buckets.get(bucket);
    if (devices === undefined) fleet.buckets.set(bucket, [device]);
    else devices.push(device);
    fleet.count += 1;
    this.#onChange(1);
  }

  remove(device: DeviceKey): void {
    const fleetId = fleetIdOf(device);
    const fleet = this.#fleets.get(fleetId);
    const bucket = hashBucketOf(device);
    const devices = fleet?.buckets.get(bucket);
    const index = devices?.indexOf(device) ?? -1;
    if (fleet === undefined || devices === undefined || index < 0) return;
    devices.splice(index, 1);
    if (devices.length === 0) fleet.buckets.delete(bucket);
    fleet.count -= 1;
    this.#onChange(-1);
    if (fleet.count === 0) this.#fleets.delete(fleetId);
  }

  async areConnected(devices: readonly DeviceKey[]): Promise<boolean[]> {
    return devices.map(
      (device) =>
        this.#fleets.get(fleetIdOf(device))?.buckets.get(hashBucketOf(device))?.includes(device) ?? false,
    );
  }

  async connectedDevices(fleetId: string, after: string, limit: number): Promise<ConnectedDevice[]> {
    const fleet = this.#fleets.get(fleetId);
    const found: ConnectedDevice[] = [];
    if (fleet === undefined) return found;
    const first = after === '' ? 0 : Number.parseInt(after.slice(0, bucketDigits), 16);
    for (let bucket = first; bucket < bucketsMax && found.length < limit; bucket += 1) {
      const devices = fleet.buckets.get(bucket);
      if (devices === undefined) continue;
      const positions = devices.map((device) => ({ device, position: positionOf(bucket, device) }));
      positions.sort((a, b) => (a.position < b.position ? -1 : 1));
      found.push(...positions.filter(({ position }) => position > after));
    }
    return found.slice(0, limit);
  }

  async connectedCount(fleetId: string): Promise<number> {
    return this.#fleets.get(fleetId)?.count ?? 0;
  }
}

/** The position of a device in the order of connected devices. */
export function connectedPosition(device: DeviceKey): string {
  return positionOf(hashBucketOf(device), device);
}

function positionOf(bucket: number, device: DeviceKey): string {
  return bucket.toString(16).padStart(bucketDigits, '0') + deviceIdOf(device);
}

function hashBucketOf(device: DeviceKey): number {
  const hash = deviceHash(device);
  return (hash ^ (hash >>> 12) ^ (hash >>> 24)) & (bucketsMax - 1);
}
