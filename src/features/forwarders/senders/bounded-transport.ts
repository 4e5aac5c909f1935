import type { Socket } from 'node:net';
import { NodeTransport } from '@nats-io/transport-node/lib/node_transport.js';
import { boundSocket } from './bounded-socket.ts';

/**
 * Bytes that a NATS server may send: these, and three quarters of what it was sent. It introduces itself in a few KB,
 * and acknowledges a message of 330 bytes or more in some 130, with long names of its stream and domain in 200. Less
 * than all: a PING is answered by as many bytes, and would pay for the next.
 */
const receivedBytesMax = 65_536;
const answeredShare = 3 / 4;

/**
 * Connection to a NATS server that need not be one. The library reads whatever comes, on the main thread: an endless
 * INFO is put together anew at each piece, and a message of any announced size is waited for.
 */
export class BoundedTransport extends NodeTransport {
  override async dial(to: { hostname: string; port: number }): Promise<Socket> {
    return bounded(await super.dial(to));
  }

  override async startTLS() {
    return bounded(await super.startTLS());
  }

  override async tlsFirst(to: { hostname: string; port: number }) {
    return bounded(await super.tlsFirst(to));
  }

  /** Destroys the socket also before the server has introduced itself, where the library leaves it open. */
  override async close(error?: Error): Promise<void> {
    if (this.connected) await super.close(error);
    else this.discard();
  }
}

function bounded<S extends Socket>(socket: S): S {
  return boundSocket(
    socket,
    ({ bytesRead, bytesWritten }) => bytesRead <= receivedBytesMax + bytesWritten * answeredShare,
  );
}
