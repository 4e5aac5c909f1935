const newline = 0x0a;
const carriageReturn = 0x0d;

/** One line of a body, without its end. */
export interface BodyLine {
  /** From 1. */
  number: number;
  /** Undefined of a line that is longer than it may be; what came of it was thrown away. */
  bytes: Buffer | undefined;
}

/**
 * The lines of a body as they arrive: each answer has those that one piece of it has completed. No more is kept
 * than one line of that length and the piece.
 */
export async function* bodyLines(
  body: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<BodyLine[]> {
  let number = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const take = (piece: Buffer): void => {
    begunBytes += piece.length;
    if (begunBytes <= lineBytesMax) begun.push(Buffer.from(piece));
    else begun = [];
  };
  const end = (): BodyLine => {
    number += 1;
    const line = begun.length === 1 ? begun[0] : Buffer.concat(begun);
    const bytes = begunBytes > lineBytesMax || line === undefined ? undefined : line;
    [begun, begunBytes] = [[], 0];
    return { number, bytes: bytes?.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes };
  };
  for await (const piece of body) {
    const lines: BodyLine[] = [];
    let from = 0;
    for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, from)) {
      take(piece.subarray(from, at));
      lines.push(end());
      from = at + 1;
    }
    if (from < piece.length) take(piece.subarray(from));
    if (lines.length > 0) yield lines;
  }
  if (begunBytes > 0) yield [end()];
}
