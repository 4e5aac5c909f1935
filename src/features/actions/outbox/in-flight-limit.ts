import type { ActionConfig } from '../config.ts';

/** Divisor for the part of a shard's queue that mail of actions may use, so that devices always find room in it. */
const share = 4;

interface Waiting {
  bytes: number;
  enter(): void;
}

/** Bounds the mails in flight to the shards; further ones wait here, those of a fleet in order, and fleets in turns. */
export class InFlightLimit {
  readonly #config: ActionConfig;
  readonly #waiting = new Map<string, Set<Waiting>>();
  #mails = 0;
  #bytes = 0;

  constructor(config: ActionConfig) {
    this.#config = config;
  }

  async pass<T>(fleetId: string, bytes: number, act: () => Promise<T>): Promise<T> {
    if (this.#waiting.size > 0 || !this.#hasRoom(bytes)) {
      await new Promise<void>((enter) => {
        const own = this.#waiting.get(fleetId) ?? new Set();
        this.#waiting.set(fleetId, own.add({ bytes, enter }));
      });
    } else this.#take(bytes);
    try {
      return await act();
    } finally {
      this.#mails -= 1;
      this.#bytes -= bytes;
      this.#admit();
    }
  }

  /** A single mail always fits, or it would wait for ever. */
  #hasRoom(bytes: number): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#config.settings.current;
    if (this.#mails === 0) return true;
    return this.#mails < shardQueueMax / share && this.#bytes + bytes <= shardQueueBytesMax / share;
  }

  #take(bytes: number): void {
    this.#mails += 1;
    this.#bytes += bytes;
  }

  /** Each one that enters ends the turn of its fleet. */
  #admit(): void {
    for (const [fleetId, own] of this.#waiting) {
      const [first] = own;
      if (first === undefined || !this.#hasRoom(first.bytes)) return;
      own.delete(first);
      this.#waiting.delete(fleetId);
      if (own.size > 0) this.#waiting.set(fleetId, own);
      this.#take(first.bytes);
      first.enter();
    }
  }
}
