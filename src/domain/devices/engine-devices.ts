import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { WriteSink } from '../write.ts';
import type {
  Activity,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  DeviceStatus,
  PutOutcome,
} from './device.ts';
import { matches } from './device-filter.ts';
import type { DeviceQuery, FoundDevices, Presence } from './device-query.ts';

/** What the devices of a shard are on every engine: their writes, and searches by whether they are connected. */
export abstract class EngineDevices {
  readonly #presence: Presence;
  readonly #sink: WriteSink;

  constructor(presence: Presence, sink: WriteSink) {
    this.#presence = presence;
    this.#sink = sink;
  }

  /** Searches by any index but `connected`, ignoring that filter. */
  protected abstract search(query: DeviceQuery): Awaitable<FoundDevices>;

  /** Reads devices in this order; undefined for one that does not exist. */
  protected abstract statusesOf(
    devices: readonly DeviceKey[],
  ): Awaitable<readonly (DeviceStatus | undefined)[]>;

  find(query: DeviceQuery): Awaitable<FoundDevices> {
    if (query.by === 'connected') return this.#findConnected(query);
    const found = this.search(query);
    return query.connected === undefined ? found : this.#withPresence(found, query.connected);
  }

  create(devices: readonly Device[]): Promise<DeviceKey | undefined> {
    return this.#sink.write('createDevices', devices);
  }

  put(puts: readonly DevicePut[]): Promise<PutOutcome[]> {
    return this.#sink.write('putDevices', puts);
  }

  change(device: DeviceKey, change: DeviceChange): Promise<boolean> {
    return this.#sink.write('changeDevice', { device, change });
  }

  changeMany(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]> {
    return this.#sink.write('changeDevices', { devices, change });
  }

  delete(device: DeviceKey): Promise<boolean> {
    return this.#sink.write('deleteDevice', device);
  }

  noteActivity(activity: readonly Activity[]): Promise<void> {
    return this.#sink.write('noteActivity', activity);
  }

  async #findConnected(query: DeviceQuery): Promise<FoundDevices> {
    const { fleetId, after, scanMax } = query;
    const connected = await this.#presence.connectedDevices(fleetId, after, scanMax);
    const reached = connected.length === scanMax ? connected.at(-1)?.position : undefined;
    const known = await this.statusesOf(connected.map(({ device }) => device));
    const items = connected.flatMap(({ position }, index) => {
      const status = known[index];
      return status !== undefined && matches(status, query) ? [{ ...status, position }] : [];
    });
    return { items, reached };
  }

  async #withPresence(found: Awaitable<FoundDevices>, connected: boolean): Promise<FoundDevices> {
    const { items, reached } = await found;
    if (items.length === 0) return { items, reached };
    const known = await this.#presence.areConnected(items.map(({ device }) => device));
    return { items: items.filter((_, index) => known[index] === connected), reached };
  }
}
