/** A number that JavaScript cannot hold exactly, or would write otherwise, as its sender wrote it. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Third argument that a browser passes to a reviver (ECMAScript, "JSON.parse source text access"). */
interface Origin {
  source?: string;
}

/**
 * Parses JSON and keeps each number as it was written: beyond 2^53 a device's counter would be shown as another one.
 * @throws SyntaxError.
 */
export function parseExactly(text: string): unknown {
  const revive = (_key: string, value: unknown, origin?: Origin): unknown =>
    typeof value === 'number' && origin?.source !== undefined && String(value) !== origin.source
      ? new ExactNumber(origin.source)
      : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

/** Writes a parsed payload on one line, at most so many characters of it. */
export function writeExactly(value: unknown, lengthMax: number): string {
  let text = '';
  const write = (one: unknown): void => {
    if (text.length > lengthMax) return;
    if (one instanceof ExactNumber) text += one.text;
    else if (Array.isArray(one)) writeAll('[', one.entries(), ']');
    else if (typeof one === 'object' && one !== null) writeAll('{', Object.entries(one), '}');
    else text += JSON.stringify(one);
  };
  const writeAll = (open: string, members: Iterable<[string | number, unknown]>, close: string): void => {
    text += open;
    let isFirst = true;
    for (const [key, member] of members) {
      if (text.length > lengthMax) return;
      if (!isFirst) text += ', ';
      isFirst = false;
      if (typeof key === 'string') text += `${JSON.stringify(key)}: `;
      write(member);
    }
    text += close;
  };
  write(value);
  return text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
}
