import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import type { ChangeToken } from '../../../domain/shard.ts';

/** Cells of one shard, a power of two. Devices that share one only make each other read again. */
const cellCount = 65_536;

/** Bytes of shared memory that one shard's versions take. */
export const versionsBytes = cellCount * Int32Array.BYTES_PER_ELEMENT;

/**
 * Version numbers of a shard's devices in memory that all threads share. The owner raises a device's number
 * after each commit that changed its credentials or its mailbox and before that commit is answered; so what a
 * thread read after it took a watch holds for as long as the watch is current.
 */
export class DeviceVersions {
  readonly #cells: Int32Array<SharedArrayBuffer>;

  constructor(cells: Int32Array<SharedArrayBuffer>) {
    this.#cells = cells;
  }

  raise(device: DeviceKey): void {
    Atomics.add(this.#cells, cellOf(device), 1);
  }

  watch(device: DeviceKey): ChangeToken {
    const cells = this.#cells;
    const cell = cellOf(device);
    const version = Atomics.load(cells, cell);
    return { isCurrent: () => Atomics.load(cells, cell) === version };
  }
}

/** FNV-1a of 32 bits. */
function cellOf(device: DeviceKey): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < deviceKeyLength; i += 1) {
    hash = Math.imul(hash ^ device.charCodeAt(i), 0x01000193);
  }
  return (hash ^ (hash >>> 16)) & (cellCount - 1);
}
