import type { ReadStream, WriteStream } from 'node:tty';

/** Switches to the alternate screen, which is restored at the end, and hides the cursor. */
const enter = '\u{1b}[?1049h\u{1b}[?25l';
const leave = '\u{1b}[?25h\u{1b}[?1049l';
const home = '\u{1b}[H';
const clearLine = '\u{1b}[K';
const clearRest = '\u{1b}[J';

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** In raw mode Ctrl-C and Ctrl-D come as keys. */
const endingKeys = ['q', 'Q', '\u{3}', '\u{4}'];

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** Draws on the whole terminal until q, Ctrl-C or a signal; then restores it. */
export class FullScreen implements Disposable {
  readonly #output: WriteStream;
  readonly #input: ReadStream | undefined;
  readonly #ending = new AbortController();
  readonly #end = (): void => this.#ending.abort();
  readonly #onKeys = (keys: Buffer): void => {
    if (endingKeys.some((key) => keys.includes(key))) this.#end();
  };
  readonly #redraw = (): void => this.#draw();
  /** Renders what is shown for the current size. */
  #picture: (size: ScreenSize) => string = () => '';

  constructor(output: WriteStream, input: ReadStream) {
    this.#output = output;
    // Keys may come from another terminal than the one drawn on.
    this.#input = input.isTTY ? input : undefined;
    this.#input?.setRawMode(true).on('data', this.#onKeys);
    for (const signal of endingSignals) process.on(signal, this.#end);
    output.on('resize', this.#redraw);
    output.write(enter);
  }

  /** Aborts when the user or a signal ends it. */
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

  /** Overwrites the screen line by line, so that nothing flickers. */
  #draw(): void {
    // Clear each line first: after a character in the last column, clearing would erase that one.
    const { columns, rows } = this.#output;
    const lines = this.#picture({ columns, rows }).split('\n').slice(0, rows);
    const fitted = lines.map((line) => clearLine + line.slice(0, columns));
    this.#output.write(`${home}${fitted.join('\n')}${lines.length < rows ? `\n${clearRest}` : ''}`);
  }
}
