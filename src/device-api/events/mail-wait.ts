import type { StreamSink } from '../../domain/shard-streams.ts';

/** One request that waits for mail (D31), from its subscription to its answer. */
export class MailWait implements StreamSink {
  readonly waits = true;
  readonly #onClose: () => void;
  /** Rejects if the secret of the request is no longer valid. */
  readonly #check: () => Promise<void>;
  readonly #timer: NodeJS.Timeout;
  #hasNews = false;
  #wake: () => void = () => {};
  #state: 'waiting' | 'late' | 'ended' = 'waiting';

  constructor(seconds: number, onClose: () => void, check: () => Promise<void>) {
    this.#onClose = onClose;
    this.#check = check;
    this.#timer = setTimeout(() => this.#settle('late'), seconds * 1_000);
  }

  /** True if its time is over: the mailbox is looked at once more. */
  get isLate(): boolean {
    return this.#state === 'late';
  }

  /** True if it is to be answered at once, whatever has come. */
  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Settles when mail was announced since the last call, or the wait is over. */
  async news(): Promise<void> {
    if (!this.#hasNews && this.#state === 'waiting') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#hasNews = false;
  }

  announce(): void {
    this.#hasNews = true;
    this.#wake();
  }

  recheck(): void {
    this.#check().catch(() => this.end());
  }

  /** Ends the wait: for a newer one of the device, a device that may not call any more, or a client that is gone. */
  end(): void {
    if (this.#state !== 'ended') this.#settle('ended');
  }

  /** Ends its place among the streams of the worker, once it has been answered. */
  close(): void {
    clearTimeout(this.#timer);
    this.#onClose();
  }

  #settle(state: 'late' | 'ended'): void {
    this.#state = state;
    this.#wake();
  }
}
