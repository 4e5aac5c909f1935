import { type DeviceKey, deviceIdOf, fleetIdOf } from '../core/identity.ts';
import type { ConnectedDevice, Presence } from './devices/device-query.ts';

/** Places of a fleet, so that a page sorts the few devices of some of them and never all that are connected. */
const placesMax = 4_096;
const placeDigits = 3;

interface FleetPresence {
  count: number;
  places: Map<number, DeviceKey[]>;
}

/** The devices of a shard that have open event streams, in the order of a hash of their ids, which spreads evenly. */
export class ConnectedDevices implements Presence {
  readonly #fleets = new Map<string, FleetPresence>();
  readonly #onChange: (change: 1 | -1) => void;

  /** Told of each device that comes or goes. */
  constructor(onChange: (change: 1 | -1) => void = () => {}) {
    this.#onChange = onChange;
  }

  add(device: DeviceKey): void {
    const fleetId = fleetIdOf(device);
    let fleet = this.#fleets.get(fleetId);
    if (fleet === undefined) {
      fleet = { count: 0, places: new Map() };
      this.#fleets.set(fleetId, fleet);
    }
    const place = placeOf(device);
    const devices = fleet.places.get(place);
    if (devices === undefined) fleet.places.set(place, [device]);
    else devices.push(device);
    fleet.count += 1;
    this.#onChange(1);
  }

  remove(device: DeviceKey): void {
    const fleetId = fleetIdOf(device);
    const fleet = this.#fleets.get(fleetId);
    const place = placeOf(device);
    const devices = fleet?.places.get(place);
    const index = devices?.indexOf(device) ?? -1;
    if (fleet === undefined || devices === undefined || index < 0) return;
    devices.splice(index, 1);
    if (devices.length === 0) fleet.places.delete(place);
    fleet.count -= 1;
    this.#onChange(-1);
    if (fleet.count === 0) this.#fleets.delete(fleetId);
  }

  async areConnected(devices: readonly DeviceKey[]): Promise<boolean[]> {
    return devices.map(
      (device) => this.#fleets.get(fleetIdOf(device))?.places.get(placeOf(device))?.includes(device) ?? false,
    );
  }

  async connectedDevices(fleetId: string, after: string, limit: number): Promise<ConnectedDevice[]> {
    const fleet = this.#fleets.get(fleetId);
    const found: ConnectedDevice[] = [];
    if (fleet === undefined) return found;
    const first = after === '' ? 0 : Number.parseInt(after.slice(0, placeDigits), 16);
    for (let place = first; place < placesMax && found.length < limit; place += 1) {
      const devices = fleet.places.get(place);
      if (devices === undefined) continue;
      const positions = devices.map((device) => ({ device, position: positionOf(place, device) }));
      positions.sort((a, b) => (a.position < b.position ? -1 : 1));
      found.push(...positions.filter(({ position }) => position > after));
    }
    return found.slice(0, limit);
  }

  async connectedCount(fleetId: string): Promise<number> {
    return this.#fleets.get(fleetId)?.count ?? 0;
  }
}

/** Where a device stands in the order of those that are connected. */
export function connectedPosition(device: DeviceKey): string {
  return positionOf(placeOf(device), device);
}

function positionOf(place: number, device: DeviceKey): string {
  return place.toString(16).padStart(placeDigits, '0') + deviceIdOf(device);
}

/** FNV-1a of 32 bits. */
function placeOf(device: DeviceKey): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < device.length; i += 1) hash = Math.imul(hash ^ device.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 12) ^ (hash >>> 24)) & (placesMax - 1);
}
