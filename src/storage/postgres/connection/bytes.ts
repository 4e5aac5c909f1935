/** A view of the same bytes, of the kind that rows hold: it can be compared, and written as text. */
export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** An id within its scope, as a key of a map. All scopes of a map are of one length, or all ids. */
export function textOfBytes(scope: string, id: Uint8Array): string {
  return scope + viewOf(id).toString('latin1');
}
