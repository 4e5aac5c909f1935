import { connect, type SecureContext } from 'node:tls';

export interface VisitOptions {
  host: string;
  port: number;
  secureContext: SecureContext;
  /** TLS session offered. */
  session: Buffer | undefined;
  request: string;
}

export interface Visit {
  /** The answer's first bytes; absent where the connection failed. */
  answer?: string;
  isResumed: boolean;
  /** Session for the next visit: the latest that came, else the one offered. */
  session: Buffer | undefined;
}

/** Connects, asks one thing, and leaves once it is answered. */
export function visit({ host, port, secureContext, session, request }: VisitOptions): Promise<Visit> {
  return new Promise((resolve) => {
    const visited: Visit = { isResumed: false, session };
    const socket = connect({ host, port, secureContext, ...(session && { session }) }, () => {
      visited.isResumed = socket.isSessionReused();
      socket.write(request, 'latin1');
    });
    socket.on('session', (bytes: Buffer) => {
      visited.session = bytes;
    });
    socket.once('data', (bytes: Buffer) => {
      visited.answer = bytes.toString('latin1');
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(visited));
  });
}
