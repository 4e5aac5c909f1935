/** Wakes those who wait for something to happen. */
export class Notifier {
  readonly #waiting = new Set<() => void>();

  notify(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Waits until it is notified, so many seconds have passed, or the signal is aborted. */
  wait(seconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      // A timer holds at most 24 days; who waits longer is woken for nothing.
      const timer = setTimeout(wake, Math.min(seconds * 1_000, 2 ** 31 - 1));
      this.#waiting.add(wake);
      signal?.addEventListener('abort', wake);
      if (signal?.aborted) wake();
    });
  }
}
