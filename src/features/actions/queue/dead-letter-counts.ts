import type { DeviceKey } from '../../../core/identity.ts';
import type { StoredActionDeadLetter } from '../outbox/dead-letters.ts';
import type { History } from '../runs/history.ts';

/** How many runs of one action are parked, of each device and in all. */
export class DeadLetterCount {
  readonly #of = new Map<DeviceKey, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(device: DeviceKey): number {
    return this.#of.get(device) ?? 0;
  }

  change(device: DeviceKey, change: number): void {
    const count = this.of(device) + change;
    if (count > 0) this.#of.set(device, count);
    else this.#of.delete(device);
    this.#total += change;
  }
}

/** The same of all actions that have run: counted on disk once, for that takes a look at each. */
export class DeadLetterCounts {
  readonly #parked: History<StoredActionDeadLetter>;
  readonly #counts = new Map<string, DeadLetterCount>();

  constructor(parked: History<StoredActionDeadLetter>) {
    this.#parked = parked;
  }

  of(action: Buffer): DeadLetterCount {
    const id = action.toString('hex');
    const known = this.#counts.get(id);
    if (known !== undefined) return known;
    const counted = new DeadLetterCount();
    for (const { record } of this.#parked.all(action)) counted.change(record.device, 1);
    this.#counts.set(id, counted);
    return counted;
  }

  /** Once it is on disk. */
  change(action: Buffer, device: DeviceKey, change: number): void {
    this.#counts.get(action.toString('hex'))?.change(device, change);
  }

  forget(action: Buffer): void {
    this.#counts.delete(action.toString('hex'));
  }
}
