const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openings = new Set([0x7b, 0x5b]);
const closings = new Set([0x7d, 0x5d]);
const spaces = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * The value of a member of a JSON object as it stands in its text, byte for byte (D11): of several of that name the
 * last one, as `JSON.parse` has it. `text` has been parsed already, so that it is known to be well-formed.
 */
export function memberBytes(text: Buffer, name: string): Buffer | undefined {
  let found: Buffer | undefined;
  let at = afterSpace(text, afterSpace(text, 0) + 1);
  while (text[at] === quote) {
    const keyEnd = endOfString(text, at);
    const key: unknown = JSON.parse(text.toString('utf8', at, keyEnd));
    const start = afterSpace(text, afterSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    if (key === name) found = text.subarray(start, end);
    at = afterSpace(text, end);
    if (text[at] === comma) at = afterSpace(text, at + 1);
  }
  return found;
}

function afterSpace(text: Buffer, from: number): number {
  let at = from;
  while (spaces.has(text[at] ?? 0)) at += 1;
  return at;
}

function endOfString(text: Buffer, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === backslash ? 2 : 1;
  return at + 1;
}

function endOfValue(text: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const byte = text[at] ?? 0;
    if (byte === quote) at = endOfString(text, at);
    else if (depth === 0 && (byte === comma || closings.has(byte) || spaces.has(byte))) return at;
    else {
      if (openings.has(byte)) depth += 1;
      else if (closings.has(byte)) depth -= 1;
      at += 1;
    }
    if (depth === 0 && (byte === quote || closings.has(byte))) return at;
  }
  return at;
}
