import { type ApiError, unavailable } from '../../core/errors.ts';
import { isWithinShare } from '../../core/fair-share.ts';

/** Something that takes memory for as long as a client takes its time: a body, or an answer. */
export interface Holder {
  /** Of nobody that is known: its address. */
  device: string;
  readonly address: string;
  /** So far. */
  bytes: number;
  /** Has lost its memory. May not write to a socket before the next turn: another one may be in use in this. */
  evict(): void;
}

/** What one device, one address or everybody has, oldest first. */
class Owner {
  bytes = 0;
  readonly holders = new Set<Holder>();

  /** The oldest, unless the only one is this. */
  oldestBeside(holder: Holder): Holder | undefined {
    const [oldest] = this.holders;
    return this.holders.size > 1 || oldest !== holder ? oldest : undefined;
  }
}

/**
 * Bytes of bodies that one front end keeps: received in part, or answered and not yet taken by the client. An address
 * has a share of it, and a device a share of what its address may have. Who wants more than his share, or more than
 * there is, is given the place of the oldest: the oldest of his device, else of his address, else of all.
 */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #key: string;
  readonly #devices = new Map<string, Owner>();
  readonly #addresses = new Map<string, Owner>();
  readonly #all = new Owner();

  /** `key` is what the limit is called. */
  constructor(bytesMax: number, key: string) {
    this.#bytesMax = bytesMax;
    this.#key = key;
  }

  /** So many bytes more. False when the oldest to go is the one that asks: then it has none any more. */
  keep(holder: Holder, bytes: number): boolean {
    for (;;) {
      const device = this.#devices.get(holder.device);
      const address = this.#addresses.get(holder.address);
      const addressBytes = address?.bytes ?? 0;
      const used = this.#all.bytes;
      if (isWithinShare(this.#bytesMax - addressBytes, used, device?.bytes ?? 0, bytes)) break;
      const oldest =
        device?.oldestBeside(holder) ??
        address?.oldestBeside(holder) ??
        this.#all.oldestBeside(holder) ??
        holder;
      this.free(oldest);
      if (oldest === holder) return false;
      oldest.evict();
    }
    this.#add(holder, bytes);
    return true;
  }

  /** Its device has shown its credentials meanwhile. */
  belongTo(device: string, holder: Holder): void {
    const { bytes } = holder;
    this.free(holder);
    holder.device = device;
    if (bytes > 0) this.#add(holder, bytes);
  }

  /** All that it has; it may have none. */
  free(holder: Holder): void {
    if (holder.bytes === 0) return;
    leave(this.#devices, holder.device, holder);
    leave(this.#addresses, holder.address, holder);
    this.#all.bytes -= holder.bytes;
    this.#all.holders.delete(holder);
    holder.bytes = 0;
  }

  /** What who was evicted is told. */
  refusal(): ApiError {
    return unavailable(`Too many bodies are half received or half sent (${this.#key}). Retry later.`);
  }

  #add(holder: Holder, bytes: number): void {
    holder.bytes += bytes;
    const owners = [
      ownerOf(this.#devices, holder.device),
      ownerOf(this.#addresses, holder.address),
      this.#all,
    ];
    for (const owner of owners) {
      owner.bytes += bytes;
      owner.holders.add(holder);
    }
  }
}

function ownerOf(owners: Map<string, Owner>, name: string): Owner {
  const known = owners.get(name);
  if (known !== undefined) return known;
  const owner = new Owner();
  owners.set(name, owner);
  return owner;
}

/** An owner that has nothing is not remembered. */
function leave(owners: Map<string, Owner>, name: string, holder: Holder): void {
  const owner = owners.get(name);
  if (owner === undefined) return;
  owner.bytes -= holder.bytes;
  owner.holders.delete(holder);
  if (owner.holders.size === 0) owners.delete(name);
}
