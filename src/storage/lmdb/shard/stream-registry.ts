import type { DeviceKey } from '../../../core/identity.ts';
import { ConnectedDevices } from '../../../domain/connected-devices.ts';
import type { StreamSink } from '../../../domain/shard-streams.ts';
import type { Effects } from '../../../domain/write.ts';

/** The open event streams and waiting requests of a shard's devices, on any thread. */
export class StreamRegistry {
  readonly #sinks = new Map<DeviceKey, StreamSink[]>();
  readonly #perDeviceMax: number;
  /** The devices of those streams. */
  readonly connected: ConnectedDevices;

  constructor(perDeviceMax: number, onConnected?: (change: 1 | -1) => void) {
    this.connected = new ConnectedDevices(onConnected);
    this.#perDeviceMax = perDeviceMax;
  }

  /**
   * Adds a stream, replacing the device's oldest beyond the limit (D21), or a waiting request, replacing the one before it
   * (D31). Returns the function that removes it.
   */
  add(device: DeviceKey, sink: StreamSink): () => void {
    let sinks = this.#sinks.get(device);
    if (sinks === undefined) {
      sinks = [];
      this.#sinks.set(device, sinks);
      this.connected.add(device);
    }
    sinks.push(sink);
    const alike = sinks.filter(({ waits = false }) => waits === (sink.waits ?? false));
    const [oldest] = alike;
    if (oldest !== undefined && alike.length > (sink.waits ? 1 : this.#perDeviceMax)) {
      sinks.splice(sinks.indexOf(oldest), 1);
      oldest.end();
    }
    return () => this.#remove(device, sink);
  }

  deliver({ announcements, endedStreams, recheckedStreams }: Effects): void {
    for (const device of recheckedStreams) for (const sink of this.#of(device)) sink.recheck();
    for (const { device, announcement } of announcements) {
      for (const sink of this.#of(device)) sink.announce(announcement);
    }
    for (const device of endedStreams) {
      const sinks = this.#sinks.get(device) ?? [];
      if (this.#sinks.delete(device)) this.connected.remove(device);
      for (const sink of sinks) sink.end();
    }
  }

  /** A copy: a stream that is cut as it is told leaves at once, and its neighbour must not be passed over. */
  #of(device: DeviceKey): StreamSink[] {
    return [...(this.#sinks.get(device) ?? [])];
  }

  #remove(device: DeviceKey, sink: StreamSink): void {
    const sinks = this.#sinks.get(device);
    const index = sinks?.indexOf(sink) ?? -1;
    if (sinks === undefined || index < 0) return;
    sinks.splice(index, 1);
    if (sinks.length > 0) return;
    this.#sinks.delete(device);
    this.connected.remove(device);
  }
}
