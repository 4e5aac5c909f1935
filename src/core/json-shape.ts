const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/**
 * Nesting limit of accepted JSON (D10): far more than devices send, far less than later readers can follow (the
 * engine of actions reaches 16,000 levels).
 */
export const jsonDepthMax = 128;

/**
 * True if JSON is nested deeper than `levelsMax`. Scans the bytes, since a parsed value has only the last of
 * duplicate members. Costs about 1 ns a byte, and nothing for a body too short to be that deep.
 */
export function isNestedOver(levelsMax: number, bytes: Uint8Array): boolean {
  const { length } = bytes;
  if (length <= 2 * levelsMax) return false;
  let depth = 0;
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === openObject || byte === openList) {
      depth += 1;
      if (depth > levelsMax) return true;
    } else if (byte === closeObject || byte === closeList) depth -= 1;
  }
  return false;
}

/**
 * True if JSON has more than `valuesMax` values, of which lists and objects count twice: each may take the engine a
 * microsecond to parse, and another byte of a text nothing to speak of. Costs about 1 ns a byte.
 */
export function hasMoreValues(valuesMax: number, bytes: Uint8Array): boolean {
  const { length } = bytes;
  let values = 1;
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === comma || byte === openObject || byte === openList) {
      values += 1;
      if (values > valuesMax) return true;
    }
  }
  return false;
}

/** The index of the closing quote. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
