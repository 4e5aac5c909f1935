import type { DeviceKey } from '../../core/identity.ts';
import type { DeviceMarks } from './device-marks.ts';

/** Maximum devices that are watched at once; of any further one fetches are written every few seconds, as ever. */
const watchedMax = 256;
/** How long a device counts as watched after somebody looked at its mail: longer than a page waits to look again. */
const glanceMs = 15_000;

/** Devices whose mail somebody looks at now, through the admin API of this node: their fetches are written at once. */
export class WatchedDevices {
  readonly #marks: DeviceMarks;
  readonly #watchers = new Map<DeviceKey, number>();
  readonly #glances = new Map<DeviceKey, NodeJS.Timeout>();

  constructor(marks: DeviceMarks) {
    this.#marks = marks;
  }

  /** Watches the device until the returned function is called, once. */
  watch(device: DeviceKey): () => void {
    const watchers = this.#watchers.get(device) ?? 0;
    if (watchers === 0) {
      if (this.#watchers.size >= watchedMax) return () => {};
      this.#marks.add(device);
    }
    this.#watchers.set(device, watchers + 1);
    return () => this.#leave(device);
  }

  /** Watches the device for some seconds. */
  glance(device: DeviceKey): void {
    const known = this.#glances.get(device);
    if (known !== undefined) {
      known.refresh();
      return;
    }
    if (this.#glances.size >= watchedMax) return;
    const leave = this.watch(device);
    const timer = setTimeout(() => {
      this.#glances.delete(device);
      leave();
    }, glanceMs);
    this.#glances.set(device, timer.unref());
  }

  #leave(device: DeviceKey): void {
    const watchers = this.#watchers.get(device) ?? 0;
    if (watchers > 1) this.#watchers.set(device, watchers - 1);
    else {
      this.#watchers.delete(device);
      this.#marks.remove(device);
    }
  }
}
