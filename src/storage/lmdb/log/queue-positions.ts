import type { DeviceKey } from '../../../core/identity.ts';
import {
  advance,
  type QueueAdvance,
  type QueueRange,
  type QueueStand,
  queuePosition,
} from '../../../domain/sync/device-queues.ts';
import { keyOfDevice } from '../layout/keys.ts';
import type { Tables } from '../layout/tables.ts';

const none = Buffer.alloc(0);

/** Where a queue of a device stands. */
export function readQueuePosition({ queues }: Tables, device: DeviceKey, name: string): QueueStand {
  return queuePosition(queues.getBinary(keyOfDevice(device)) ?? none, name);
}

/** The queues of a shard's devices, inside the owner's write transaction. */
export class QueuePositions {
  readonly #tables: Pick<Tables, 'queues' | 'devices'>;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Moves a queue behind so many records; a device that was deleted meanwhile keeps none. */
  advance(device: DeviceKey, range: QueueRange, count: number): QueueAdvance {
    const key = keyOfDevice(device);
    const step = advance(this.#tables.queues.getBinary(key) ?? none, range, count);
    if (step.queues !== undefined && this.#tables.devices.doesExist(key)) {
      this.#tables.queues.putSync(key, step.queues);
    }
    return step;
  }
}
