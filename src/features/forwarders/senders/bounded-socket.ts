import type { Socket } from 'node:net';

const tooMuchReceivedCode = 'ERR_TOO_MUCH_RECEIVED';

/**
 * Destroys the socket once it has read more than it may. A receiver need not be one: what libraries make of endless
 * answers is work of the main thread. Counts where the socket takes what it has read, for listeners come and go.
 */
export function boundSocket<S extends Socket>(socket: S, mayRead: (socket: S) => boolean): S {
  const push = socket.push.bind(socket);
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (mayRead(socket)) return push(chunk, encoding);
    socket.destroy(Object.assign(new Error(), { code: tooMuchReceivedCode }));
    return false;
  };
  return socket;
}

/** True if the code is that of a socket that has read more than it may. */
export function isTooMuchReceived(code: string | undefined): boolean {
  return code === tooMuchReceivedCode;
}
