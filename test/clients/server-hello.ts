const supportedVersions = 43;
const preSharedKey = 41;

/**
 * True if a server resumes a TLS session, by the first bytes of both ends: with TLS 1.3 it takes the key of the one
 * that is offered, before that it repeats the id of it (RFC 8446, RFC 5077).
 */
export function isResumed(client: Buffer, server: Buffer): boolean {
  const found = readHello(server);
  if (found.extensions.has(supportedVersions)) return found.extensions.has(preSharedKey);
  return found.sessionId.length > 0 && found.sessionId.equals(readHello(client).sessionId);
}

/** Id of a session, of either hello, and the extensions of a server's. */
function readHello(bytes: Buffer): { sessionId: Buffer; extensions: Set<number> } {
  // Record 5, handshake 4, version 2, random 32; behind the id of a server's: cipher 2, compression 1.
  const idAt = 44;
  const sessionId = bytes.subarray(idAt, idAt + (bytes[idAt - 1] ?? 0));
  const extensions = new Set<number>();
  const isOfServer = bytes[5] === 2;
  const begin = idAt + sessionId.length + 3;
  if (!isOfServer) return { sessionId, extensions };
  const end = begin + 2 + bytes.readUInt16BE(begin);
  for (let at = begin + 2; at < end; at += 4 + bytes.readUInt16BE(at + 2))
    extensions.add(bytes.readUInt16BE(at));
  return { sessionId, extensions };
}
