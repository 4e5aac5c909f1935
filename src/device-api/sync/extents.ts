/**
 * Finds where in a sync's body the payload of each record is, and the reply of each settlement: they are stored byte for
 * byte (D11), and so without a second parse. The JSON has been parsed before, so it is sound; of members with the same
 * name the last one counts, as for `JSON.parse`.
 */

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const space = 0x20;

const names = {
  records: Buffer.from('records'),
  payload: Buffer.from('payload'),
  settle: Buffer.from('settle'),
  reply: Buffer.from('reply'),
};

/**
 * That member of each of the `count` items of that list, as the offsets of its start and its end; both 0 for an item
 * without it.
 */
export function extentsOf(
  json: Buffer,
  list: 'records' | 'settle',
  member: 'payload' | 'reply',
  count: number,
): Uint32Array {
  const extents = new Uint32Array(2 * count);
  const found = { start: 0, end: 0 };
  findMember(json, skipSpace(json, 0), names[list], found);
  let at = skipSpace(json, found.start + 1);
  for (let index = 0; index < count; index += 1) {
    if (json[at] === openObject) {
      at = findMember(json, at, names[member], found);
      extents[2 * index] = found.start;
      extents[2 * index + 1] = found.end;
    } else at = endOfValue(json, at);
    at = behind(json, at, comma);
  }
  return extents;
}

/** Puts the last value of that name of the object at `start` into `found`, and returns the object's end. */
function findMember(
  json: Buffer,
  start: number,
  name: Buffer,
  found: { start: number; end: number },
): number {
  found.start = 0;
  found.end = 0;
  let at = skipSpace(json, start + 1);
  while (json[at] !== closeObject) {
    const nameAt = at;
    const nameEnd = endOfString(json, at);
    at = behind(json, nameEnd, colon);
    const end = endOfValue(json, at);
    if (isNamed(json, nameAt, nameEnd, name)) {
      found.start = at;
      found.end = end;
    }
    at = behind(json, end, comma);
  }
  return at + 1;
}

function isNamed(json: Buffer, at: number, end: number, name: Buffer): boolean {
  let index = 0;
  while (index < name.length && json[at + 1 + index] === name[index]) index += 1;
  if (index === name.length && at + 2 + index === end) return true;
  // Characters may be escaped.
  const isPlain = json.subarray(at, end).indexOf(backslash) < 0;
  return !isPlain && JSON.parse(json.toString('utf8', at, end)) === name.toString('latin1');
}

/** The next token behind that one, which may be absent: between two values, say, but not behind the last. */
function behind(json: Buffer, at: number, token: number): number {
  const next = skipSpace(json, at);
  return json[next] === token ? skipSpace(json, next + 1) : next;
}

function skipSpace(json: Buffer, start: number): number {
  let at = start;
  while ((json[at] ?? quote) <= space) at += 1;
  return at;
}

/** The index behind the closing quote. */
function endOfString(json: Buffer, start: number): number {
  let at = start + 1;
  for (let byte = json[at]; byte !== quote && byte !== undefined; byte = json[at]) {
    at += byte === backslash ? 2 : 1;
  }
  return at + 1;
}

function endOfValue(json: Buffer, start: number): number {
  const first = json[start];
  if (first === quote) return endOfString(json, start);
  const isNested = first === openObject || first === openList;
  return isNested ? endOfNested(json, start) : endOfLiteral(json, start);
}

function endOfNested(json: Buffer, start: number): number {
  const { length } = json;
  let depth = 0;
  for (let at = start; at < length; at += 1) {
    const byte = json[at];
    if (byte === quote) at = endOfString(json, at) - 1;
    else if (byte === openObject || byte === openList) depth += 1;
    else if (byte === closeObject || byte === closeList) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return length;
}

/** Of a number, true, false or null. */
function endOfLiteral(json: Buffer, start: number): number {
  let at = start;
  for (let byte = json[at]; byte !== undefined; byte = json[at]) {
    if (byte <= space || byte === comma || byte === closeObject || byte === closeList) break;
    at += 1;
  }
  return at;
}
