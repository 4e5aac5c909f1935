/** One line on a terminal that is written over; where there is no terminal it is left out. */
export class ProgressLine {
  /** The one that was shown last, or left out. */
  last = 'the start';
  #isShown = false;

  show(text: string): void {
    this.last = text;
    if (!process.stderr.isTTY) return;
    const line = text.slice(0, (process.stderr.columns || 80) - 1);
    process.stderr.write(`\r\x1b[K${line}`);
    this.#isShown = true;
  }

  clear(): void {
    if (this.#isShown) process.stderr.write('\r\x1b[K');
    this.#isShown = false;
  }
}
