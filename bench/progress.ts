/** One line on a terminal that is written over; where there is no terminal it is left out. */
export class ProgressLine {
  #isShown = false;

  show(text: string): void {
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
