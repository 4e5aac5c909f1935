import { createReadStream } from 'node:fs';
import { endianness } from 'node:os';
import { createInterface } from 'node:readline';
import { clientAddressOf } from '../../core/address.ts';
import type { ConnectionRate } from '../../core/limits/connection-rate.ts';
import type { App, HttpResponse } from '../uws/uws.ts';

/** The kernel's lists of connections, one per line, for both address families. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const intervalMs = 1_000;
/** Maximum share of the main thread's time for a census. */
const shareMax = 0.1;
/** Matches local port, remote address, and state: established, or closed by the client only. */
const line = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} (?:01|08) /;

/**
 * Finds the addresses with too many open connections. uWebSockets.js does not give the address of a connection that
 * closes, so the kernel's list is read, and only while more connections are open in total than one address may have.
 */
export class AddressCensus {
  readonly #counts: { readonly open: number };
  readonly #perAddressMax: number;
  readonly #onFull: (addresses: readonly string[]) => void;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #wasFull = false;

  constructor(
    counts: { readonly open: number },
    perAddressMax: number,
    onFull: (addresses: readonly string[]) => void,
  ) {
    this.#counts = counts;
    this.#perAddressMax = perAddressMax;
    this.#onFull = onFull;
  }

  start(port: number): void {
    if (this.#perAddressMax > 0) this.#schedule(port, 0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(port: number, tookMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#take(port), Math.max(intervalMs, tookMs / shareMax));
  }

  async #take(port: number): Promise<void> {
    const startMs = performance.now();
    const full = this.#counts.open < this.#perAddressMax ? [] : await this.#full(port);
    if (full.length > 0 || this.#wasFull) this.#onFull(full);
    this.#wasFull = full.length > 0;
    this.#schedule(port, performance.now() - startMs);
  }

  async #full(port: number): Promise<string[]> {
    const localPort = port.toString(16).toUpperCase().padStart(4, '0');
    const open = new Map<string, number>();
    for (const table of tables) {
      try {
        for await (const text of createInterface(createReadStream(table, 'latin1'))) {
          const [, local, remote = ''] = line.exec(text) ?? [];
          if (local === localPort) open.set(remote, (open.get(remote) ?? 0) + 1);
        }
      } catch {
        // A kernel without IPv6 has no second table.
      }
    }
    const byAddress = new Map<string, number>();
    for (const [remote, count] of open) {
      const address = clientAddressOf(bytesOf(remote));
      byAddress.set(address, (byAddress.get(address) ?? 0) + count);
    }
    return [...byAddress].filter(([, count]) => count >= this.#perAddressMax).map(([address]) => address);
  }
}

/** Parses an address as the kernel prints it: as 32-bit numbers in the byte order of the machine. */
function bytesOf(hexadecimal: string): Buffer {
  const bytes = Buffer.from(hexadecimal, 'hex');
  return endianness() === 'LE' ? bytes.swap32() : bytes;
}

/** Limits for which connections are refused, by their configuration keys. */
const refusalReasons = [
  'connectionsMax',
  'connectionsPerAddressMax',
  'connectionsPerSecondPerAddressMax',
] as const;
type RefusalReason = (typeof refusalReasons)[number];

const openAt = 0;
const maxAt = 1;
/** The first of the counts of refused connections, one for each reason. */
const refusedAt = 2;
const cells = refusedAt + refusalReasons.length;

/** Shared by all workers and the main thread. */
export function allocateConnections(): SharedArrayBuffer {
  return new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT);
}

/** Counts open and refused connections, and their maximum, of all workers together. */
export class ConnectionCounts {
  readonly #cells: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory);
  }

  get open(): number {
    return Atomics.load(this.#cells, openAt);
  }

  refused(): [reason: RefusalReason, count: number][] {
    return refusalReasons.map((reason, index) => [reason, Atomics.load(this.#cells, refusedAt + index)]);
  }

  set max(connections: number) {
    Atomics.store(this.#cells, maxAt, connections);
  }

  /** Counts a connection; false if it is one too many. `leave` must be called in either case. */
  enter(): boolean {
    return Atomics.add(this.#cells, openAt, 1) < Atomics.load(this.#cells, maxAt);
  }

  leave(): void {
    Atomics.sub(this.#cells, openAt, 1);
  }

  countRefused(reason: RefusalReason): void {
    Atomics.add(this.#cells, refusedAt + refusalReasons.indexOf(reason), 1);
  }
}

/**
 * Closes excess connections on arrival, in total, of one address, or of one address in a second: before the TLS
 * handshake, so that one costs no more than its accept. uWebSockets.js reports every accept and every close, but a close
 * without its address: so connections per address are counted periodically by AddressCensus.
 */
export class ConnectionGate {
  readonly #counts: ConnectionCounts;
  readonly #rate: ConnectionRate;
  /** Addresses at their maximum of connections. */
  #full: ReadonlySet<string> = new Set();

  constructor(counts: ConnectionCounts, rate: ConnectionRate) {
    this.#counts = counts;
    this.#rate = rate;
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
    const reason = this.#refusal(() => clientAddressOf(new Uint8Array(response.getRemoteAddress())));
    if (reason === undefined) return;
    this.#counts.countRefused(reason);
    response.close();
  }

  #refusal(addressOf: () => string): RefusalReason | undefined {
    if (!this.#counts.enter()) return 'connectionsMax';
    if (this.#full.size > 0 && this.#full.has(addressOf())) return 'connectionsPerAddressMax';
    return this.#rate.isExceeded(addressOf) ? 'connectionsPerSecondPerAddressMax' : undefined;
  }
}
