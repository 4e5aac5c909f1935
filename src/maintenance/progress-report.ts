import { SingleBar } from 'cli-progress';

const lineIntervalMs = 5_000;

/**
 * Reports progress and remaining time on stderr: a bar on a terminal, else a line now and then. Counts records, which
 * all take about as long.
 */
export class ProgressReport {
  readonly #title: string;
  readonly #total: number;
  readonly #bar: SingleBar | undefined;
  readonly #startMs = performance.now();
  #lineMs = this.#startMs;
  /** Records of finished phases. */
  #passed = 0;

  constructor(title: string, records: number) {
    this.#title = title;
    this.#total = Math.max(records, 1);
    if (!process.stderr.isTTY) return;
    this.#bar = new SingleBar({
      format: `${title} {bar} {percentage} %, {eta_formatted} left`,
      stream: process.stderr,
      // Uses the rate of the last seconds: copying and removing differ.
      etaBuffer: 50,
    });
    this.#bar.start(this.#total, 0);
  }

  get seconds(): string {
    return ((performance.now() - this.#startMs) / 1_000).toFixed(1);
  }

  /** Shows the progress of the present phase. */
  show(records: number): void {
    const passed = Math.min(this.#passed + records, this.#total);
    if (this.#bar !== undefined) {
      this.#bar.update(Math.round(passed));
      return;
    }
    const nowMs = performance.now();
    if (nowMs - this.#lineMs < lineIntervalMs || passed === 0) return;
    this.#lineMs = nowMs;
    const left = ((nowMs - this.#startMs) / passed) * (this.#total - passed);
    const percent = Math.floor((100 * passed) / this.#total);
    console.error(`${this.#title}: ${percent} %, about ${Math.ceil(left / 1_000)} s left.`);
  }

  /** Ends a phase. */
  add(records: number): void {
    this.#passed += records;
    this.show(0);
  }

  /** Stops the bar, complete or not. */
  end(): void {
    this.#bar?.stop();
  }
}
