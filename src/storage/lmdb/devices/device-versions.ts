import { type DeviceKey, deviceHash } from '../../../core/identity.ts';
import type { ChangeToken } from '../../../domain/devices/shard-devices.ts';

/** Cells per shard, a power of two. Devices sharing one only cause each other extra reads. */
const cellCount = 65_536;

/** Shared memory per shard. */
export const versionsBytes = cellCount * Int32Array.BYTES_PER_ELEMENT;

/**
 * Version numbers of a shard's devices in shared memory. The owner raises a device's number after each commit that
 * changed its credentials or mailbox, and before answering it; so what a thread read after taking a token holds while
 * the token is current.
 */
export class DeviceVersions {
  readonly #cells: Int32Array<SharedArrayBuffer>;

  constructor(cells: Int32Array<SharedArrayBuffer>) {
    this.#cells = cells;
  }

  raise(device: DeviceKey): void {
    Atomics.add(this.#cells, cellOf(device), 1);
  }

  changeToken(device: DeviceKey): ChangeToken {
    const cells = this.#cells;
    const cell = cellOf(device);
    const version = Atomics.load(cells, cell);
    return { isCurrent: () => Atomics.load(cells, cell) === version };
  }
}

function cellOf(device: DeviceKey): number {
  const hash = deviceHash(device);
  return (hash ^ (hash >>> 16)) & (cellCount - 1);
}
