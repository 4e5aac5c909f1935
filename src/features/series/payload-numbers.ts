/** Reads the fields of a payload that are numbers: those named by JSON Pointer, or all at its top level. */
export function payloadNumbers(payload: Buffer, fields: readonly string[] | undefined): [string, number][] {
  let document: unknown;
  try {
    document = JSON.parse(payload.toString('utf8'));
  } catch {
    return [];
  }
  if (typeof document !== 'object' || document === null) return [];
  const found: [string, unknown][] =
    fields === undefined
      ? Object.entries(document).map(([name, value]) => [`/${escaped(name)}`, value])
      : fields.map((field) => [field, valueAt(document, field)]);
  return found.filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
}

/** The value at a JSON Pointer (RFC 6901). */
function valueAt(document: object, pointer: string): unknown {
  let value: unknown = document;
  for (const part of pointer.slice(1).split('/')) {
    if (typeof value !== 'object' || value === null) return undefined;
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    value = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  }
  return value;
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
