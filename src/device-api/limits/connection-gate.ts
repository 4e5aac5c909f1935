import { clientAddressOf } from '../../core/address.ts';
import type { App, HttpResponse } from '../uws/uws.ts';

const openAt = 0;
const maxAt = 1;
const refusedAt = 2;
const cells = 3;

/** Shared by all workers and the main thread. */
export function allocateConnections(): SharedArrayBuffer {
  return new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT);
}

/** How many connections are open, how many may be, and how many were refused: of all workers together. */
export class ConnectionCounts {
  readonly #cells: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory);
  }

  get open(): number {
    return Atomics.load(this.#cells, openAt);
  }

  get refused(): number {
    return Atomics.load(this.#cells, refusedAt);
  }

  set max(connections: number) {
    Atomics.store(this.#cells, maxAt, connections);
  }

  /** False when there are too many with this one. It is to be left in either case. */
  enter(): boolean {
    return Atomics.add(this.#cells, openAt, 1) < Atomics.load(this.#cells, maxAt);
  }

  leave(): void {
    Atomics.sub(this.#cells, openAt, 1);
  }

  countRefused(): void {
    Atomics.add(this.#cells, refusedAt, 1);
  }
}

/**
 * Closes connections that are too many, of all or of one address, when they arrive: before their handshake, so
 * that one costs no more than its acceptance. The library tells of every connection from its acceptance on, and
 * of its end, but then no longer whose it was: so what one address has open is counted elsewhere, from time to
 * time.
 */
export class ConnectionGate {
  readonly #counts: ConnectionCounts;
  /** Addresses that have all the connections they may have. */
  #full: ReadonlySet<string> = new Set();

  constructor(counts: ConnectionCounts) {
    this.#counts = counts;
  }

  setFull(addresses: readonly string[]): void {
    this.#full = new Set(addresses);
  }

  watch(app: App): void {
    const onChange = (response: HttpResponse, change: number): void => {
      if (change === -1) this.#counts.leave();
      else this.#admit(response);
    };
    app.filter(onChange as Parameters<App['filter']>[0]);
  }

  #admit(response: HttpResponse): void {
    const hasRoom = this.#counts.enter();
    const isFull =
      this.#full.size > 0 && this.#full.has(clientAddressOf(new Uint8Array(response.getRemoteAddress())));
    if (hasRoom && !isFull) return;
    this.#counts.countRefused();
    response.close();
  }
}
