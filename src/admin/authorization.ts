import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../core/errors.ts';

/**
 * A hook that lets only the bearer of `token` in. Digests are compared, so that neither the length nor a
 * common beginning of the token can be told from the time it takes.
 */
export function requireToken(token: string): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const expected = hash('sha256', token, 'buffer');
  return async (request, reply) => {
    const [, given = ''] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    if (timingSafeEqual(hash('sha256', given, 'buffer'), expected)) return;
    reply.header('WWW-Authenticate', 'Bearer');
    throw new ApiError('invalid_token');
  };
}
