import { type ApiError, unavailable } from '../../core/errors.ts';
import { isWithinShare } from '../../core/fair-share.ts';

/** A body or an answer that takes memory for as long as its client is slow. */
export interface Holder {
  /** Its address, unless the device has authenticated. */
  device: string;
  readonly address: string;
  /** Memory taken so far. */
  bytes: number;
  /** Called when its memory was taken away. Must not write to a socket in this turn: another one may be in use. */
  evict(): void;
}

/** The holders of one device, of one address, or all of them; oldest first. */
class Owner {
  bytes = 0;
  readonly holders = new Set<Holder>();

  /** Returns the oldest holder, or undefined if `holder` is the only one. */
  oldestBeside(holder: Holder): Holder | undefined {
    const [oldest] = this.holders;
    return this.holders.size > 1 || oldest !== holder ? oldest : undefined;
  }
}

/**
 * Bounds the memory of one front end for bodies that are partly received or partly sent. An address gets a share of
 * it, and a device a share of what its address may have. Beyond a share, or beyond the whole, the oldest holder is
 * evicted: of the same device, else of the same address, else of all.
 */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #key: string;
  readonly #devices = new Map<string, Owner>();
  readonly #addresses = new Map<string, Owner>();
  readonly #all = new Owner();

  /** `key` is the config key of the limit. */
  constructor(bytesMax: number, key: string) {
    this.#bytesMax = bytesMax;
    this.#key = key;
  }

  /** Reserves more bytes. False if the holder itself was the one to evict: it then has none left. */
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

  /** Moves a holder from its address to its device, once that has authenticated. */
  assign(device: string, holder: Holder): void {
    const { bytes } = holder;
    this.free(holder);
    holder.device = device;
    if (bytes > 0) this.#add(holder, bytes);
  }

  /** Releases all its memory; it may have none. */
  free(holder: Holder): void {
    if (holder.bytes === 0) return;
    leave(this.#devices, holder.device, holder);
    leave(this.#addresses, holder.address, holder);
    this.#all.bytes -= holder.bytes;
    this.#all.holders.delete(holder);
    holder.bytes = 0;
  }

  /** The error for a client whose body was evicted. */
  refusal(): ApiError {
    return unavailable(`Too many bodies are partly received or partly sent (${this.#key}). Retry later.`);
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

/** Removes a holder from its owner, and the owner once it has none. */
function leave(owners: Map<string, Owner>, name: string, holder: Holder): void {
  const owner = owners.get(name);
  if (owner === undefined) return;
  owner.bytes -= holder.bytes;
  owner.holders.delete(holder);
  if (owner.holders.size === 0) owners.delete(name);
}
