import type { BodyMemory, Holder } from '../body/body-memory.ts';
import type { HttpResponse } from '../uws/uws.ts';

/**
 * The rest of an answer that its socket does not take at once, handed over as there is room: what `end` is given the
 * library keeps in memory, and a client may ask again and again and never read. Without memory for it the
 * connection ends.
 */
export class HalfSentAnswer implements Holder {
  readonly device: string;
  readonly address: string;
  readonly #response: HttpResponse;
  readonly #memory: BodyMemory;
  bytes = 0;
  /** The library tells of an abort no more once the answer is over, and it may not be touched after either. */
  #isOver = false;

  constructor(
    response: HttpResponse,
    memory: BodyMemory,
    { device, address }: Pick<Holder, 'device' | 'address'>,
  ) {
    this.#response = response;
    this.#memory = memory;
    this.device = device;
    this.address = address;
  }

  /** `body` is all of it, of which the socket has taken some. */
  send(body: string | Buffer, bytes: number): void {
    const response = this.#response;
    response.onAborted(() => this.#end());
    if (!this.#memory.keep(this, bytes)) {
      this.evict();
      return;
    }
    const whole = Buffer.from(body);
    response.onWritable((offset) => {
      const [isTaken, isOver] = response.tryEnd(whole.subarray(offset), bytes);
      if (isOver) this.#end();
      return isTaken;
    });
  }

  /** A turn later: the library may be in the middle of this answer, or of another. */
  evict(): void {
    setImmediate(() => {
      if (!this.#isOver) this.#response.close();
    });
  }

  #end(): void {
    this.#isOver = true;
    this.#memory.free(this);
  }
}
