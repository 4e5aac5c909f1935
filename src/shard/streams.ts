import type { DeviceKey } from '../core/identity.ts';
import type { StreamSink } from './shard.ts';
import type { Effects } from './state.ts';

/** The open event streams of a shard's devices, wherever their connections are. */
export class StreamRegistry {
  readonly #sinks = new Map<DeviceKey, StreamSink[]>();
  readonly #perDeviceMax: number;

  constructor(perDeviceMax: number) {
    this.#perDeviceMax = perDeviceMax;
  }

  /** The oldest stream of the device makes room (D21). Answers how to leave. */
  add(device: DeviceKey, sink: StreamSink): () => void {
    const sinks = this.#sinks.get(device) ?? [];
    this.#sinks.set(device, sinks);
    sinks.push(sink);
    if (sinks.length > this.#perDeviceMax) sinks.shift()?.end();
    return () => this.#remove(device, sink);
  }

  deliver({ announcements, endedStreams }: Effects): void {
    for (const { device, announcement } of announcements) {
      for (const sink of this.#sinks.get(device) ?? []) sink.announce(announcement);
    }
    for (const device of endedStreams) {
      const sinks = this.#sinks.get(device) ?? [];
      this.#sinks.delete(device);
      for (const sink of sinks) sink.end();
    }
  }

  #remove(device: DeviceKey, sink: StreamSink): void {
    const sinks = this.#sinks.get(device);
    const index = sinks?.indexOf(sink) ?? -1;
    if (sinks === undefined || index < 0) return;
    sinks.splice(index, 1);
    if (sinks.length === 0) this.#sinks.delete(device);
  }
}
