import type { ActionConfig } from '../config.ts';

/** Of the queue of one shard: what mail of actions may take of it, so that devices always find it open. */
const share = 4;

/** Bounds the mails that are on their way to the shards at once; the others wait their turn here. */
export class InFlightLimit {
  readonly #config: ActionConfig;
  readonly #waiting: { bytes: number; enter(): void }[] = [];
  #mails = 0;
  #bytes = 0;

  constructor(config: ActionConfig) {
    this.#config = config;
  }

  async pass<T>(bytes: number, act: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#hasRoom(bytes)) {
      await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }));
    } else this.#take(bytes);
    try {
      return await act();
    } finally {
      this.#mails -= 1;
      this.#bytes -= bytes;
      this.#admit();
    }
  }

  /** A single one always has, or it would wait for ever. */
  #hasRoom(bytes: number): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#config;
    if (this.#mails === 0) return true;
    return this.#mails < shardQueueMax / share && this.#bytes + bytes <= shardQueueBytesMax / share;
  }

  #take(bytes: number): void {
    this.#mails += 1;
    this.#bytes += bytes;
  }

  #admit(): void {
    let admitted = 0;
    for (const { bytes, enter } of this.#waiting) {
      if (!this.#hasRoom(bytes)) break;
      this.#take(bytes);
      enter();
      admitted += 1;
    }
    this.#waiting.splice(0, admitted);
  }
}
