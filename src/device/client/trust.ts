import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  checkServerIdentity,
  connect,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';

/**
 * 2026-01-01. A clock before it is one of a device that has none: what it says of a certificate's dates is not asked,
 * or such a device would never reach the server whose clock it could go by.
 */
export const releasedAtMs = 1_767_225_600_000;
const chainLengthMax = 8;
const openSecondsMax = 30;

/** Authorities and pins by which the server proves its identity. */
export interface Trust {
  /** Authorities in PEM. */
  ca: string | undefined;
  /** Base64 of the SHA-256 of public keys (SubjectPublicKeyInfo, as in RFC 7469). */
  pins: readonly string[];
  /** Made once: to read authorities takes longer than to shake hands. */
  context: SecureContext;
  /**
   * The last TLS session that a server gave which had proved itself: to resume it takes no certificates and no
   * signatures. Forgotten when a connection fails that offered it.
   */
  session: Buffer | undefined;
}

/** Without authorities and pins a server proves itself by the authorities that Node knows. */
export function createTrust(ca: string | undefined, pins: readonly string[]): Trust {
  const context = createSecureContext({ ...(ca !== undefined && { ca }), minVersion: 'TLSv1.2' });
  return { ca, pins, context, session: undefined };
}

/** No connection that could be trusted: nothing was sent. */
export class UnreachableError extends Error {}

/** Opens a TLS connection, and gives it out only once the server has proved itself: no secret goes to another. */
export function openTrusted(host: string, port: number, trust: Trust): Promise<TLSSocket> {
  const { ca, pins, context, session } = trust;
  const isClockWrong = Date.now() < releasedAtMs;
  // OpenSSL can be told to leave dates out, Node cannot; then the chain is checked here.
  const isCheckedHere = ca !== undefined && isClockWrong;
  const isByPinsAlone = ca === undefined && pins.length > 0;
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 && { servername: host }),
      secureContext: context,
      ...(session !== undefined && { session }),
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: !isCheckedHere && !isByPinsAlone,
    });
    const fail = (error: Error): void => {
      socket.destroy();
      if (trust.session === session) trust.session = undefined;
      reject(new UnreachableError(error.message));
    };
    /** Who resumes a session has proved itself when that began. */
    const findStranger = (): Error | undefined => {
      if (isCheckedHere && !isIssuedBy(ca, socket))
        return new Error('the certificate is of no trusted authority');
      const stranger = isCheckedHere ? checkServerIdentity(host, socket.getPeerCertificate()) : undefined;
      if (stranger !== undefined) return stranger;
      const isPinned = pins.length === 0 || pins.includes(pinOf(socket.getPeerCertificate()));
      return isPinned ? undefined : new Error("The server's key is none of the pinned ones.");
    };
    const giveUp = (): void => fail(new Error(`no connection in ${openSecondsMax} s`));
    socket.setTimeout(openSecondsMax * 1_000, giveUp);
    socket.once('error', fail);
    socket.once('secureConnect', () => {
      const error = socket.isSessionReused() ? undefined : findStranger();
      if (error !== undefined) return fail(error);
      socket.setTimeout(0);
      socket.off('timeout', giveUp);
      socket.off('error', fail);
      // An error between two owners of the socket must not end the process.
      socket.on('error', () => {});
      // With TLS 1.3 they come when they like: behind the handshake, and more than one.
      socket.on('session', (given) => {
        trust.session = given;
      });
      resolve(socket);
    });
  });
}

function pinOf({ raw }: PeerCertificate): string {
  const key = new X509Certificate(raw).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}

/** Checks that the server's certificate leads to one of these authorities, by its signatures alone. */
function isIssuedBy(ca: string, socket: TLSSocket): boolean {
  const authorities = (ca.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (text) => new X509Certificate(text),
  );
  const isSigned = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
    issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  let link = socket.getPeerCertificate(true);
  for (let length = 0; length < chainLengthMax; length += 1) {
    const certificate = new X509Certificate(link.raw);
    const isAuthority = authorities.some(({ raw }) => raw.equals(certificate.raw));
    if (isAuthority || authorities.some((one) => isSigned(certificate, one))) return true;
    const above = link.issuerCertificate;
    if (above === undefined || above === link || !isSigned(certificate, new X509Certificate(above.raw)))
      return false;
    link = above;
  }
  return false;
}
