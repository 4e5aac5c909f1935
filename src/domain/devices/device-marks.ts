import { type DeviceKey, deviceHash } from '../../core/identity.ts';

/** A power of two. */
const cellCount = 16_384;

/**
 * Devices that are marked for all threads, in memory that they share: by a hash, so a device may seem marked since
 * another one is, never the reverse. While none is, asking costs one look at memory.
 */
export class DeviceMarks {
  /** How many marks there are; behind it, how many in each cell. */
  readonly #cells: Int32Array<SharedArrayBuffer>;

  constructor(memory = DeviceMarks.allocate()) {
    this.#cells = new Int32Array(memory);
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer((1 + cellCount) * Int32Array.BYTES_PER_ELEMENT);
  }

  has(device: DeviceKey): boolean {
    return Atomics.load(this.#cells, 0) > 0 && Atomics.load(this.#cells, cellOf(device)) > 0;
  }

  /** Adds a mark, to be removed as often as it is added. */
  add(device: DeviceKey): void {
    this.#change(device, 1);
  }

  remove(device: DeviceKey): void {
    this.#change(device, -1);
  }

  #change(device: DeviceKey, by: 1 | -1): void {
    Atomics.add(this.#cells, cellOf(device), by);
    Atomics.add(this.#cells, 0, by);
  }
}

function cellOf(device: DeviceKey): number {
  const hash = deviceHash(device);
  return 1 + ((hash ^ (hash >>> 16)) & (cellCount - 1));
}
