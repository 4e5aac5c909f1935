/** A Buffer view of the same bytes, as rows hold them: comparable, and convertible to text. */
export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Map key for an id within a scope. All scopes of one map have the same length, or all ids do. */
export function textOfBytes(scope: string, id: Uint8Array): string {
  return scope + viewOf(id).toString('latin1');
}
