import type { ReadStream, WriteStream } from 'node:tty';

/** The terminal's other screen, so that what was on it comes back; and its cursor, which would blink about. */
const enter = '\u{1b}[?1049h\u{1b}[?25l';
const leave = '\u{1b}[?25h\u{1b}[?1049l';
const home = '\u{1b}[H';
const clearLine = '\u{1b}[K';
const clearRest = '\u{1b}[J';

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Keys come as they are pressed, and so do Ctrl-C and Ctrl-D. */
const endingKeys = ['q', 'Q', '\u{3}', '\u{4}'];

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** A whole terminal to draw on until somebody presses q or Ctrl-C, or a signal says so; then it is as it was. */
export class FullScreen implements Disposable {
  readonly #output: WriteStream;
  readonly #input: ReadStream | undefined;
  readonly #ending = new AbortController();
  readonly #end = (): void => this.#ending.abort();
  readonly #onKeys = (keys: Buffer): void => {
    if (endingKeys.some((key) => keys.includes(key))) this.#end();
  };
  readonly #redraw = (): void => this.#draw();
  /** What is shown, for whatever size it is shown at. */
  #picture: (size: ScreenSize) => string = () => '';

  constructor(output: WriteStream, input: ReadStream) {
    this.#output = output;
    // Keys may come from elsewhere than the terminal that is drawn on.
    this.#input = input.isTTY ? input : undefined;
    this.#input?.setRawMode(true).on('data', this.#onKeys);
    for (const signal of endingSignals) process.on(signal, this.#end);
    output.on('resize', this.#redraw);
    output.write(enter);
  }

  /** Given when it is to be left. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  show(picture: (size: ScreenSize) => string): void {
    this.#picture = picture;
    this.#draw();
  }

  [Symbol.dispose](): void {
    for (const signal of endingSignals) process.off(signal, this.#end);
    this.#output.off('resize', this.#redraw);
    this.#input?.off('data', this.#onKeys).setRawMode(false).pause();
    this.#output.write(leave);
  }

  /** Over what was there, line by line, so that nothing flickers. */
  #draw(): void {
    // Cleared first: behind a character in the last column a terminal clears that one.
    const { columns, rows } = this.#output;
    const lines = this.#picture({ columns, rows }).split('\n').slice(0, rows);
    const fitted = lines.map((line) => clearLine + line.slice(0, columns));
    this.#output.write(`${home}${fitted.join('\n')}${lines.length < rows ? `\n${clearRest}` : ''}`);
  }
}
