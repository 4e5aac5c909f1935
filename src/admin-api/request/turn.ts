declare module 'fastify' {
  interface FastifyRequest {
    turn: Turn;
  }
}

/**
 * Settles when a request may do one more piece of work that takes some milliseconds of this thread. Whatever goes over
 * many items asks for each piece, so that no other request waits for more than that.
 */
export type Turn = () => Promise<void>;
